"""Functions of agents in threads, and those that go on after the end of their rollouts."""

import asyncio
import inspect
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any

from grupo.envs import daemon_threads
from grupo.envs.proxy.program import HarnessError
from grupo.util.limits import LEFT_THREADS

logger = logging.getLogger(__name__)

OnEnd = Callable[[Any, BaseException | None], object]
END_SECONDS = 5.0  # after its rollout, in which a function may end before it counts
_stopped: dict["AgentThread", float] = {}  # those at work, with the time at which each was stopped
os.register_at_fork(after_in_child=_stopped.clear)  # threads do not survive a fork


class AgentThread:
    """A function, plain or async, which runs in a daemon thread of its own.

    Args:
        call: The function, without arguments.
        on_end: Is called in the thread with the function's value, or with the error that it raised.
    """

    def __init__(self, call: Callable[[], Any], on_end: OnEnd) -> None:
        self.call = call
        self.on_end = on_end
        self._lock = Lock()
        self._is_stopped = False
        self._has_ended = False
        self._cancel: Callable[[], object] | None = None  # of a coroutine, once it runs

    def start(self) -> None:
        """Run the function.

        Raises:
            HarnessError: Too many functions have not ended with their rollouts.
        """
        count = num_left()
        if count >= LEFT_THREADS.maximum:
            raise HarnessError(
                f"was not started: {count} functions of earlier agents go on in their threads."
                f" Allowed: {LEFT_THREADS.allowed}; coroutines are cancelled and programs killed"
            )
        if count:
            _warn_of_left_threads()
        daemon_threads.run_in_worker(self._run)

    def stop(self) -> None:
        """Cancel a coroutine. A plain function goes on, since Python cannot end a thread."""
        with self._lock:
            self._is_stopped = True
            if not self._has_ended:
                _stopped[self] = monotonic()
            if self._cancel:
                with suppress(RuntimeError):  # its event loop has ended
                    self._cancel()

    def _run(self) -> None:
        value, error = None, None
        try:
            value = self.call()
            value = asyncio.run(self._awaited(value)) if inspect.isawaitable(value) else value
        except BaseException as raised:  # an agent that calls sys.exit() fails like any other
            error = raised
        with self._lock:
            self._has_ended = True
            _stopped.pop(self, None)
        self.on_end(value, error)

    async def _awaited(self, value: Any) -> Any:
        task, loop = asyncio.ensure_future(value), asyncio.get_running_loop()
        with self._lock:
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._is_stopped:
                task.cancel()
        return await task


def num_left() -> int:
    """Number of functions that have not ended within `END_SECONDS` after their rollouts."""
    return sum(monotonic() - since > END_SECONDS for since in [*_stopped.values()])


@cache
def _warn_of_left_threads() -> None:
    """Say once in a process that threads go on."""
    logger.warning(
        "The function of an agent has not ended %g s after its rollout, and goes on in its thread."
        " The reward term left_threads counts such functions; no agent is started beside %d.",
        END_SECONDS,
        LEFT_THREADS.maximum,
    )
