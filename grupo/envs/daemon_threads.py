"""Daemon threads for work that may hang: who is done takes on more, who hangs is replaced."""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

Work = Callable[[], None]

_idle: list["_Worker"] = []
os.register_at_fork(after_in_child=_idle.clear)  # threads stay with the parent


def do(work: Work) -> None:
    """Let a thread do it soon, whatever the others do; it must not raise."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
    worker.given.put(work)


class _Worker(Thread):
    """Does what it is given, one thing after another."""

    def __init__(self) -> None:
        super().__init__(name="reward", daemon=True)
        self.given = SimpleQueue[Work]()

    def run(self) -> None:
        while True:
            self.given.get()()
            _idle.append(self)
