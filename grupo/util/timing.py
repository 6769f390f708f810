"""A stopwatch for the phases of a step."""

import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager


def shortest_seconds(compute: Callable[[], object], repeats: int) -> float:
    """The shortest duration of several calls, after one that warms up.

    Args:
        compute: Is called, and waits for its device.
        repeats: Number of calls that count.
    """
    compute()
    durations: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        compute()
        durations.append(time.perf_counter() - start)
    return min(durations)


class Stopwatch:
    """Seconds by name, spent within `lap(name)`; it starts when it is constructed."""

    def __init__(self) -> None:
        self.start_time = time.perf_counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def lap(self, name: str) -> Generator[None]:
        """Add the time within the block to `seconds[name]`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start_time
