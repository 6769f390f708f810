"""Messages about calls of an environment that take long and may never end."""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Thread

from grupo.core.types import Task
from grupo.util.console import print_error

PATIENCE = 60.0  # seconds before the first message about a call; doubled for each later message
CHECKS_PER_PATIENCE = 4  # number of checks of the running calls in the time `patience`


@dataclass
class _Call:
    description: str
    begun_at: float  # by `time.monotonic`
    next_message_after: float  # seconds since `begun_at`


class SlowCalls:
    """Prints messages about calls that have been running for long, from a thread of its own.

    No call is stopped, because some environments take minutes.

    Args:
        patience: Seconds before the first message about a call.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.lock = Lock()
        self.calls: dict[int, _Call] = {}
        self.num_calls = 0
        self.thread: Thread | None = None

    @contextmanager
    def watch(self, env: object, method: str, task: Task) -> Generator[None]:
        """Watch the call of an environment's method for as long as the context is open."""
        now = time.monotonic()
        description = f"{type(env).__name__}.{method} for task {task.key}"
        with self.lock:
            number = self.num_calls = self.num_calls + 1
            self.calls[number] = _Call(description, now, self.patience)
            self._start()
        try:
            yield
        finally:
            with self.lock:
                del self.calls[number]

    def _start(self) -> None:
        if self.thread is None or not self.thread.is_alive():
            self.thread = Thread(target=self._run, daemon=True)
            self.thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(self.patience / CHECKS_PER_PATIENCE)
            with self.lock:
                if not self.calls:
                    self.thread = None
                    return
                messages = list(self._take_due_messages())
            for message in messages:
                print_error(message)

    def _take_due_messages(self) -> Iterator[str]:
        for call in self.calls.values():
            seconds = time.monotonic() - call.begun_at
            if seconds >= call.next_message_after:
                call.next_message_after *= 2
                yield (
                    f"Waiting for {call.description}: {seconds:.0f} s so far."
                    " Ctrl-C ends the run, and `grupo resume` continues it."
                )


slow_calls = SlowCalls()
