"""A pool of daemon threads for calls that may hang: an idle thread is reused, a hanging one is not.

Daemon threads, because a thread that hangs must not keep the process from exiting.
"""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

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


class _WorkerThread(Thread):
    """Runs the jobs of its queue one after another, and is idle after each."""

    def __init__(self) -> None:
        super().__init__(name="reward", daemon=True)
        self.jobs = SimpleQueue[Job]()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            _idle_workers.append(self)
