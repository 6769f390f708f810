"""Tasks of several sources, in given proportions."""

import math
from collections.abc import Sequence
from itertools import count

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.rng import make_rng
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource


@component
class TaskMixture:
    """`size` tasks drawn from several sources with given weights.

    Which source task i is from depends on the seed and on i alone. The tasks of each source come in
    their own order, and again from its first when it is used up.
    """

    sources: tuple[tuple[TaskSource, float], ...]
    size: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        weights = [weight for _, weight in self.sources]
        if not weights or not all(0 < w < math.inf for w in weights):
            raise ConfigError(f"sources: weights are {weights}. Allowed: finite numbers above 0.")
        if self.size < 1:
            raise ConfigError(f"size: {self.size}. Allowed: at least 1.")

    def load(self) -> Sequence[Task]:
        loaded = [source.load() for source, _ in self.sources]
        rng = make_rng(self.seed, "mix")
        chosen = rng.choices(range(len(loaded)), [w for _, w in self.sources], k=self.size)
        turns = [count() for _ in loaded]
        places = [(which, next(turns[which]) % len(loaded[which])) for which in chosen]
        return LazyTasks(self.size, lambda i: loaded[places[i][0]][places[i][1]])
