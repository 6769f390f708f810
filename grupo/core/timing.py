"""Where the time of a step goes."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds by name, of what ran within `lap(name)`."""

    def __init__(self) -> None:
        self.start_time = time.perf_counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Count the time that passes within towards `name`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began

    @property
    def elapsed(self) -> float:
        """Seconds since it was started."""
        return time.perf_counter() - self.start_time
