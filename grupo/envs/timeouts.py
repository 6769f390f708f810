"""Asking code that may raise, hang or exit: what it says in the time it is given, or why not."""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from grupo.envs import daemon_threads

# Judges in threads share one processor: many at once would only run out of time together.
MAX_CONCURRENT = 8
MAX_ERROR_CHARS = 500  # characters of an exception that are kept

_semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(frozen=True)
class CallFailure:
    """Why there is no answer."""

    reason: str


async def call_all_with_timeout(
    calls: Sequence[Callable[[], Any]], time_limit: float
) -> Sequence[Any]:
    """What each of the calls says, or a `CallFailure`, each within `time_limit` seconds.

    They are called one after another in a daemon thread, which blocks neither this loop nor the
    end of the program however long one hangs: the next then get a thread of their own. Python
    cannot end a thread. What a call returns to be awaited is awaited here, together with the
    others; when its time is over it is cancelled and left alone. Waiting for a thread is free.
    """
    said: list[Any] = []
    loop = asyncio.get_running_loop()
    async with _semaphores.setdefault(loop, asyncio.Semaphore(MAX_CONCURRENT)):
        while len(said) < len(calls):
            said += await _CallQueue(calls[len(said) :]).run(time_limit)
    return await asyncio.gather(*(_await_with_timeout(time_limit, answer) for answer in said))


async def call_with_timeout(call: Callable[[], Any], time_limit: float) -> Any:
    """What one call says, or a `CallFailure`: called as by `ask`, whoever else is called."""
    (said,) = await _CallQueue([call]).run(time_limit)
    return said


@dataclass
class _CallQueue:
    """Calls that a thread works through until it is done or given up."""

    calls: Sequence[Callable[[], Any]]
    results: list[Any] = field(default_factory=list)
    current_call: tuple[int, float] = (0, 0.0)  # which call runs, and since when
    abandoned: bool = False

    async def run(self, time_limit: float) -> Sequence[Any]:
        """What they said up to the first that hangs, and that it does."""
        done = asyncio.Event()
        self.current_call = (0, monotonic())
        daemon_threads.run_in_worker(partial(self._work, asyncio.get_running_loop(), done))
        try:
            while len(self.results) < len(self.calls):
                number, since = self.current_call
                left = since + time_limit - monotonic()
                if left <= 0 and len(self.results) == number:
                    why = CallFailure(f"did not answer within {time_limit} s")
                    return [*self.results[:number], why]
                await _wait_for_event(done, max(left, 0.0))
            return self.results
        finally:
            self.abandoned = True

    def _work(self, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
        for number, call in enumerate(self.calls):
            if self.abandoned:
                return
            self.current_call = (number, monotonic())
            self.results.append(_call_caught(call))
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(done.set)


def failure_from_exception(error: BaseException) -> CallFailure:
    """An exception as the reason why there is no answer."""
    said = "".join(traceback.format_exception_only(error)).strip()  # even if its text raises
    return CallFailure(f"raised {said}"[:MAX_ERROR_CHARS])


def _call_caught(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BaseException as error:  # a reward that calls sys.exit() has failed, no more
        return failure_from_exception(error)


async def _wait_for_event(event: asyncio.Event, timeout: float) -> None:
    with suppress(TimeoutError):  # `wait_for` of Python 3.11 may lose a Ctrl-C
        async with asyncio.timeout(timeout):
            await event.wait()


async def _await_with_timeout(time_limit: float, result: Any) -> Any:
    """asyncio.timeout would wait for a coroutine that ignores being cancelled; this does not."""
    if not inspect.isawaitable(result):
        return result
    task = asyncio.ensure_future(_await_caught(result))
    try:
        done, _ = await asyncio.wait({task}, timeout=time_limit)
    finally:
        task.cancel()
    return task.result() if done else CallFailure(f"did not answer within {time_limit} s")


async def _await_caught(result: Awaitable[Any]) -> Any:
    try:
        return await result
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return failure_from_exception(error)
