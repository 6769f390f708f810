"""An event loop beside the thread that waits for it, which does the heavy work itself.

OpenMP keeps a team of threads for every thread that computes, and where the teams together are
larger than the machine all of them become slow. So sampling computes in the thread that updates.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
Jobs = SimpleQueue[Callable[[], None] | None]  # None: there will be no more

_jobs: ContextVar[Jobs | None] = ContextVar("_jobs", default=None)


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """What it returns, or raises; this thread does what is `handed` to it meanwhile.

    It may be called where a loop is running already, as in a notebook. A Ctrl-C cancels it.
    """
    jobs: Jobs = SimpleQueue()
    begun, result = Future[Callable[[], Any]](), Future[T]()

    async def main() -> T:
        _jobs.set(jobs)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task
        begun.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await coroutine

    def turn() -> None:
        try:
            result.set_result(asyncio.run(main()))
        except BaseException as error:
            result.set_exception(error)
        jobs.put(None)

    thread = Thread(target=copy_context().run, args=(turn,), name="loop", daemon=True)
    try:
        thread.start()
        for job in iter(jobs.get, None):
            job()
    except BaseException:
        if thread.ident is not None:  # there may be no threads left to start one
            with suppress(RuntimeError):  # it is over already
                begun.result()()
            wait([result])  # what it still does before it ends
        raise
    return result.result()


async def run_on_main_thread(fn: Callable[[], T]) -> T:
    """What `work` returns, done by the thread that waits for this loop; if none does, on the spot.

    Works are done one after another.
    """
    jobs, done = _jobs.get(), Future[T]()

    def job() -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(fn())
        except Exception as error:
            done.set_exception(error)

    if jobs is None:
        job()
    else:
        jobs.put(job)
    return await asyncio.wrap_future(done)
