"""Daemon threads for work that may hang: who is done takes on more, who hangs is replaced."""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

Job = Callable[[], None]

_idle_workers: list["_WorkerThread"] = []
os.register_at_fork(after_in_child=_idle_workers.clear)  # threads stay with the parent


def run_in_worker(job: Job) -> None:
    """Let a thread do it soon, whatever the others do; it must not raise."""
    try:
        worker = _idle_workers.pop()
    except IndexError:
        worker = _WorkerThread()
        worker.start()
    worker.jobs.put(job)


class _WorkerThread(Thread):
    """Does what it is given, one thing after another."""

    def __init__(self) -> None:
        super().__init__(name="reward", daemon=True)
        self.jobs = SimpleQueue[Job]()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            _idle_workers.append(self)
