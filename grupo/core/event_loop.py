"""An asyncio event loop in a thread of its own, with heavy work on the thread that waits for it.

OpenMP keeps a team of threads for every thread that computes. Where the teams together are larger
than the machine, all of them become slow. Generation therefore computes on the thread that also
runs the updates.
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
Jobs = SimpleQueue[Callable[[], None] | None]  # None ends the queue

_jobs: ContextVar[Jobs | None] = ContextVar("_jobs", default=None)


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion, in a new event loop on a thread of its own.

    Meanwhile the calling thread executes the jobs submitted with `run_on_main_thread`. The function
    may be called where an event loop is already running, as in a notebook. Ctrl-C cancels the
    coroutine.
    """
    jobs: Jobs = SimpleQueue()
    cancel = Future[Callable[[], Any]]()
    result = Future[T]()

    async def main() -> T:
        _jobs.set(jobs)
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task
        cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await coroutine

    def run_loop() -> None:
        try:
            result.set_result(asyncio.run(main()))
        except BaseException as error:
            result.set_exception(error)
        jobs.put(None)

    thread = Thread(target=copy_context().run, args=(run_loop,), name="loop", daemon=True)
    try:
        thread.start()
        for job in iter(jobs.get, None):
            job()
    except BaseException:
        if thread.ident is not None:  # None if the system could not start another thread
            with suppress(RuntimeError):  # the loop has already ended
                cancel.result()()
            wait([result])  # the coroutine may still clean up
        raise
    return result.result()


async def run_on_main_thread(fn: Callable[[], T]) -> T:
    """Call `fn` on the thread that waits in `run_coroutine`; without one, call it at once.

    Calls are executed one after another.
    """
    jobs = _jobs.get()
    done = Future[T]()

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
