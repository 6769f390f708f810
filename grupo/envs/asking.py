"""Asking code that may raise, hang or exit: what it says in the time it is given, or why not."""

import asyncio
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

# Judges in threads share one processor: many at once would only run out of time together.
AT_ONCE = 8
LONGEST = 500  # characters of an exception that are kept

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(frozen=True)
class Failure:
    """Why there is no answer."""

    why: str


async def ask(call: Callable[[], Any], time_limit: float) -> Any:
    """What `call()` says, or a `Failure`.

    It is called in a daemon thread of its own, which blocks neither this loop nor the end of the
    program however long it hangs; Python cannot end it. What it returns to be awaited is awaited
    here, cancelled and left alone when its time is over. Time in the queue for a thread is free.
    """
    loop = asyncio.get_running_loop()
    async with _slots.setdefault(loop, asyncio.Semaphore(AT_ONCE)):
        said = await _within(time_limit, _in_thread(call))
    return await _within(time_limit, said) if inspect.isawaitable(said) else said


async def _within(time_limit: float, answer: Awaitable[Any]) -> Any:
    """asyncio.timeout would wait for a coroutine that ignores being cancelled; this does not."""
    task = asyncio.ensure_future(_caught(answer))
    try:
        done, _ = await asyncio.wait({task}, timeout=time_limit)
    finally:
        task.cancel()
    return task.result() if done else Failure(f"did not answer within {time_limit} s")


async def _caught(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return failure(error)


def failure(error: BaseException) -> Failure:
    """An exception as the reason why there is no answer."""
    said = "".join(traceback.format_exception_only(error)).strip()  # even if its text raises
    return Failure(f"raised {said}"[:LONGEST])


async def _in_thread(call: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        try:
            said = call()
        except BaseException as error:
            said = failure(error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(_settle, answer, said)

    threading.Thread(target=run, name="reward", daemon=True).start()
    return await answer


def _settle(answer: "asyncio.Future[Any]", said: Any) -> None:
    if not answer.done():  # it was not given up meanwhile
        answer.set_result(said)
