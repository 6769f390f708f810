"""A pool of daemon threads for calls that may hang: an idle thread is reused, a hanging one is not.

Daemon threads, because a thread that hangs must not keep the process from exiting.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
Job = Callable[[], None]

_idle_workers: list["_WorkerThread"] = []
os.register_at_fork(after_in_child=_idle_workers.clear)  # threads do not survive a fork


def run_in_worker(job: Job) -> None:
    """Run `job` in an idle thread, or in a new one if none is idle; `job` must not raise."""
    try:
        worker = _idle_workers.pop()
    except IndexError:
        worker = _WorkerThread()
        worker.start()
    worker.jobs.put(job)


def call_in_worker(call: Callable[[], T], time_limit: float) -> T:
    """The result of a call in a worker thread.

    Raises:
        TimeoutError: It took more than `time_limit` seconds; the thread is abandoned.
    """
    result = Future[T]()

    def job() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    run_in_worker(job)
    try:
        return result.result(time_limit)
    except TimeoutError as error:
        if result.done():  # the call's own error
            raise
        raise TimeoutError(f"no result within {time_limit:g} s") from error


class _WorkerThread(Thread):
    """Runs the jobs of its queue one after another, and is idle after each."""

    def __init__(self) -> None:
        super().__init__(name="reward", daemon=True)
        self.jobs = SimpleQueue[Job]()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            _idle_workers.append(self)
