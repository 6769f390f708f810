"""Calls of user code that may raise, hang or exit: the result, or the reason why there is none."""

import asyncio
import inspect
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any

from grupo.envs import daemon_threads
from grupo.rewards.base import AnswerError
from grupo.util.error_location import error_location
from grupo.util.json_text import without_lone_surrogates

# Reward threads share one interpreter: with many at once all of them would run out of time.
MAX_CONCURRENT = 8
MAX_ERROR_CHARS = 500  # characters kept of an exception's text


@dataclass(frozen=True)
class CallFailure:
    """Takes the place of a call's result.

    Args:
        reason: Why the call has no result.
        exceeds_limit: True if it exceeded a limit of time, memory or recursion.
        answer_error: True if the answer that was scored is known to be the cause.
    """

    reason: str
    exceeds_limit: bool = False
    answer_error: bool = False

    @property
    def may_be_answer_error(self) -> bool:
        """True if the answer is, or may be, the cause."""
        return self.exceeds_limit or self.answer_error


class CallSlots:
    """Limits the calls that run at the same time in this process, whatever their event loop.

    An `asyncio.Semaphore` belongs to one event loop; the interpreter that the calls share does not.

    Args:
        count: Number of calls that may run at the same time.
    """

    def __init__(self, count: int) -> None:
        self.lock = Lock()
        self.free = count
        self.waiting = deque[Future[None]]()

    async def __aenter__(self) -> None:
        slot = Future[None]()
        with self.lock:
            self.waiting.append(slot)
            self._grant_slots()
        try:
            await asyncio.wrap_future(slot)
        except asyncio.CancelledError:
            if not slot.cancel():  # it was granted before the cancellation
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        with self.lock:
            self.free += 1
            self._grant_slots()

    def _grant_slots(self) -> None:
        while self.free and self.waiting:
            slot = self.waiting.popleft()
            if slot.set_running_or_notify_cancel():
                self.free -= 1
                slot.set_result(None)


_call_slots = CallSlots(MAX_CONCURRENT)


async def call_all_with_timeout(
    calls: Sequence[Callable[[], Any]], time_limit: float
) -> Sequence[Any]:
    """Result of each call, or a `CallFailure` if it raised or took more than `time_limit` seconds.

    The calls run one after another in a daemon thread, which blocks neither the event loop nor the
    end of the process. Python cannot end a thread: if a call hangs, its thread is abandoned and the
    remaining calls run in another one. An awaitable result is awaited here, concurrently with the
    others, and cancelled after the time limit. Waiting for a free thread does not count.
    """
    results: list[Any] = []
    async with _call_slots:
        while len(results) < len(calls):
            results += await _CallQueue(calls[len(results) :]).run(time_limit)
    return await asyncio.gather(*(_await_with_timeout(time_limit, result) for result in results))


async def call_with_timeout(call: Callable[[], Any], time_limit: float) -> Any:
    """Result of one call, or a `CallFailure`; not subject to the limit of concurrent threads."""
    (result,) = await _CallQueue([call]).run(time_limit)
    return result


@dataclass
class _CallQueue:
    """Calls that one thread works off until all are done or one of them hangs."""

    calls: Sequence[Callable[[], Any]]
    results: list[Any] = field(default_factory=list)
    current_call: tuple[int, float] = (0, 0.0)  # index of the running call, and its start time
    abandoned: bool = False

    async def run(self, time_limit: float) -> Sequence[Any]:
        """Results up to the first call that hangs; that call's `CallFailure` is the last one."""
        done = asyncio.Event()
        self.current_call = (0, monotonic())
        daemon_threads.run_in_worker(partial(self._work, asyncio.get_running_loop(), done))
        try:
            while len(self.results) < len(self.calls):
                index, started = self.current_call
                remaining = started + time_limit - monotonic()
                if remaining <= 0 and len(self.results) == index:
                    return [*self.results[:index], _timeout_failure(time_limit)]
                await _wait_for_event(done, max(remaining, 0.0))
            return self.results
        finally:
            self.abandoned = True

    def _work(self, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
        for index, call in enumerate(self.calls):
            if self.abandoned:
                return
            self.current_call = (index, monotonic())
            self.results.append(_call_caught(call))
        with suppress(RuntimeError):  # the loop is closed, so nothing waits for the event
            loop.call_soon_threadsafe(done.set)


def failure_from_exception(error: BaseException) -> CallFailure:
    """The `CallFailure` of a call that raised `error`."""
    # format_exception_only survives an exception whose __str__ raises
    message = without_lone_surrogates("".join(traceback.format_exception_only(error)).strip())
    location = error_location(error)
    return CallFailure(
        f"raised {message}"[:MAX_ERROR_CHARS] + f" ({location})" * bool(location),
        exceeds_limit=isinstance(error, MemoryError | RecursionError),
        answer_error=isinstance(error, AnswerError),
    )


def _timeout_failure(time_limit: float) -> CallFailure:
    return CallFailure(f"did not return within {time_limit} s", exceeds_limit=True)


def _call_caught(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BaseException as error:  # a reward that calls sys.exit() fails like any other
        return failure_from_exception(error)


async def _wait_for_event(event: asyncio.Event, timeout: float) -> None:
    with suppress(TimeoutError):  # asyncio.wait_for of Python 3.11 may swallow a cancellation
        async with asyncio.timeout(timeout):
            await event.wait()


async def _await_with_timeout(time_limit: float, result: Any) -> Any:
    """Await `result` if it is awaitable; returns on time even if it ignores its cancellation.

    `asyncio.timeout` would wait for a coroutine that suppresses `CancelledError`.
    """
    if not inspect.isawaitable(result):
        return result
    task = asyncio.ensure_future(_await_caught(result))
    try:
        done, _ = await asyncio.wait({task}, timeout=time_limit)
    finally:
        task.cancel()
    return task.result() if done else _timeout_failure(time_limit)


async def _await_caught(result: Awaitable[Any]) -> Any:
    try:
        return await result
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return failure_from_exception(error)
