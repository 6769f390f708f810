"""An event loop in a daemon thread, for clients that live longer than one call."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Event, RLock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
RESPONSE_SECONDS = 1.0  # a loop that runs no callback for so long after a time-out is blocked


class BackgroundLoop:
    """Runs coroutines for other threads, all in one event loop.

    Connections belong to the event loop that opened them, so they need one that does not end with a
    call. A coroutine that blocks the thread stops all others of its loop: after a time-out for that
    reason, later calls run in a new loop.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # a finalizer may submit a coroutine in any thread, at any point
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine; the returned future holds its result, and cancels it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())

    def call(self, coroutine: Coroutine[Any, Any, T], time_limit: float) -> T:
        """The result of a coroutine.

        Raises:
            TimeoutError: It took more than `time_limit` seconds; the coroutine is cancelled.
        """
        loop = self._running_loop()
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return future.result(time_limit)
        except TimeoutError as error:
            if future.done():  # the coroutine's own error
                raise
            future.cancel()
            self._replace_if_blocked(loop)
            raise TimeoutError(f"did not return within {time_limit} s") from error

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=self._loop.run_forever, name="background", daemon=True).start()
            return self._loop

    def _replace_if_blocked(self, loop: asyncio.AbstractEventLoop) -> None:
        responded = Event()
        loop.call_soon_threadsafe(responded.set)
        if not responded.wait(RESPONSE_SECONDS):
            with self._lock:
                if self._loop is loop:
                    self._loop = None
