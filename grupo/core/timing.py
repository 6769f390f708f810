"""A stopwatch for the phases of a step."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds by name, spent within `lap(name)`; it starts when it is constructed."""

    def __init__(self) -> None:
        self.start_time = time.perf_counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
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
