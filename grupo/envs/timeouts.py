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
AT_ONCE = 8
LONGEST = 500  # characters of an exception that are kept

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(frozen=True)
class Failure:
    """Why there is no answer."""

    why: str


async def ask(calls: Sequence[Callable[[], Any]], time_limit: float) -> Sequence[Any]:
    """What each of the calls says, or a `Failure`, each within `time_limit` seconds.

    They are called one after another in a daemon thread, which blocks neither this loop nor the
    end of the program however long one hangs: the next then get a thread of their own. Python
    cannot end a thread. What a call returns to be awaited is awaited here, together with the
    others; when its time is over it is cancelled and left alone. Waiting for a thread is free.
    """
    said: list[Any] = []
    loop = asyncio.get_running_loop()
    async with _slots.setdefault(loop, asyncio.Semaphore(AT_ONCE)):
        while len(said) < len(calls):
            said += await _Round(calls[len(said) :]).answers(time_limit)
    return await asyncio.gather(*(_awaited(time_limit, answer) for answer in said))


async def ask_one(call: Callable[[], Any], time_limit: float) -> Any:
    """What one call says, or a `Failure`: called as by `ask`, whoever else is called."""
    (said,) = await _Round([call]).answers(time_limit)
    return said


@dataclass
class _Round:
    """Calls that a thread works through until it is done or given up."""

    calls: Sequence[Callable[[], Any]]
    said: list[Any] = field(default_factory=list)
    began: tuple[int, float] = (0, 0.0)  # which call runs, and since when
    given_up: bool = False

    async def answers(self, time_limit: float) -> Sequence[Any]:
        """What they said up to the first that hangs, and that it does."""
        done = asyncio.Event()
        self.began = (0, monotonic())
        daemon_threads.do(partial(self._work, asyncio.get_running_loop(), done))
        try:
            while len(self.said) < len(self.calls):
                number, since = self.began
                left = since + time_limit - monotonic()
                if left <= 0 and len(self.said) == number:
                    why = Failure(f"did not answer within {time_limit} s")
                    return [*self.said[:number], why]
                await _set_within(done, max(left, 0.0))
            return self.said
        finally:
            self.given_up = True

    def _work(self, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
        for number, call in enumerate(self.calls):
            if self.given_up:
                return
            self.began = (number, monotonic())
            self.said.append(_caught(call))
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(done.set)


def failure(error: BaseException) -> Failure:
    """An exception as the reason why there is no answer."""
    said = "".join(traceback.format_exception_only(error)).strip()  # even if its text raises
    return Failure(f"raised {said}"[:LONGEST])


def _caught(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BaseException as error:  # a reward that calls sys.exit() has failed, no more
        return failure(error)


async def _set_within(done: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):  # `wait_for` of Python 3.11 may lose a Ctrl-C
        async with asyncio.timeout(seconds):
            await done.wait()


async def _awaited(time_limit: float, answer: Any) -> Any:
    """asyncio.timeout would wait for a coroutine that ignores being cancelled; this does not."""
    if not inspect.isawaitable(answer):
        return answer
    task = asyncio.ensure_future(_caught_later(answer))
    try:
        done, _ = await asyncio.wait({task}, timeout=time_limit)
    finally:
        task.cancel()
    return task.result() if done else Failure(f"did not answer within {time_limit} s")


async def _caught_later(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return failure(error)
