"""A mixture of task sources."""

import math
from collections.abc import Sequence
from itertools import count
from typing import Annotated

from annotated_types import Interval

from grupo.core.component import check_field, component
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource
from grupo.tasks.in_memory import as_task_source
from grupo.util.limits import GENERATED_TASKS
from grupo.util.rng import make_rng


@component
class TaskMixture:
    """Tasks drawn at random from several sources.

    The source of task i depends only on the seed and on i. The tasks of each source keep their
    order, and start over when the source is used up.

    Args:
        sources: Pairs of a source, or of a table in memory, and its weight.
        size: Number of tasks.
        seed: Seed of the draws.
    """

    sources: tuple[tuple[TaskSource, Annotated[float, Interval(gt=0, lt=math.inf)]], ...]
    size: Annotated[int, Interval(ge=1, le=GENERATED_TASKS.maximum)] = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_field(self, "sources", bool(self.sources), "at least one source with its weight")
        sources = ((as_task_source(source, "sources"), weight) for source, weight in self.sources)
        object.__setattr__(self, "sources", tuple(sources))

    def load(self) -> Sequence[Task]:
        tasks_by_source = [source.load() for source, _ in self.sources]
        rng = make_rng(self.seed, "mix")
        weights = [weight for _, weight in self.sources]
        chosen = rng.choices(range(len(tasks_by_source)), weights, k=self.size)
        counters = [count() for _ in tasks_by_source]
        places = [(k, next(counters[k]) % len(tasks_by_source[k])) for k in chosen]
        return LazyTasks(self.size, lambda i: tasks_by_source[places[i][0]][places[i][1]])
