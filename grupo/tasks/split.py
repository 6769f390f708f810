"""Training tasks and held-out tasks that have no question in common, by construction."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from grupo.core.errors import ConfigError
from grupo.core.rng import make_rng
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource


@dataclass(frozen=True)
class TrainingTasks(Sequence[Task]):
    """The tasks at `places`, those whose key is in `held_out` left out.

    Tasks that are made when asked for cannot be counted beforehand: where one of them turns out to
    be held out, the next that is not stands in for it.
    """

    tasks: Sequence[Task]
    indices: Sequence[int]
    excluded_keys: frozenset[str]

    def __post_init__(self) -> None:
        if not self.indices or self._next_training_task(0) is None:
            raise ConfigError("Nothing is left to train on: every task of the source is held out.")

    @cached_property
    def num_excluded(self) -> int:
        """How many tasks of the source are left out of training; finding out reads them all."""
        return sum(task.key in self.excluded_keys for task in self.tasks)

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        asked = range(len(self))[index]
        return [self[i] for i in asked] if isinstance(asked, range) else self._training_task(asked)

    def _training_task(self, index: int) -> Task:
        task = self._next_training_task(index)
        assert task is not None, "some task can be trained on, or there would be no such view"
        return task

    def _next_training_task(self, index: int) -> Task | None:
        """The first task from `index` on, round the end, that is not held out."""
        order = (self.indices[(index + i) % len(self)] for i in range(len(self)))
        tasks = (self.tasks[place] for place in order)
        return next((task for task in tasks if task.key not in self.excluded_keys), None)


def split_tasks(
    source: TaskSource | Sequence[Task],
    eval_tasks: int | TaskSource | Sequence[Task],
    seed: int = 0,
) -> tuple[TrainingTasks, Sequence[Task]]:
    """Tasks to train on, and held-out tasks that are none of them: so many, or a source's.

    >>> from grupo.tasks.reasoning_gym import ReasoningGym
    >>> train, test = split_tasks(ReasoningGym("chain_sum", size=50), 10)
    >>> len(train), len(test), {task.key for task in train} & {task.key for task in test}
    (40, 10, set())
    """
    tasks, drawn = _load(source), set[int]()
    if isinstance(eval_tasks, int):
        drawn, kept = _draw_eval_tasks(tasks, eval_tasks, seed)
    else:
        kept = list(_load(eval_tasks))
    keys = frozenset(task.key for task in kept)
    if not isinstance(tasks, LazyTasks):  # all in memory: what is held out is known
        drawn = {place for place, task in enumerate(tasks) if task.key in keys}
    places = array("q", (i for i in range(len(tasks)) if i not in drawn))
    return TrainingTasks(tasks, places, keys), kept


def check_disjoint(
    train_tasks: Sequence[Task], eval_tasks: Sequence[Task], max_checked: int = 1000
) -> None:
    """Refuse when any of `sample` training tasks, evenly spaced, is held out as well."""
    keys = {task.key for task in eval_tasks}
    step = max(1, len(train_tasks) // max_checked)
    both = next((task for task in train_tasks[::step] if task.key in keys), None)
    if both is not None:
        raise ConfigError(
            f"Task {both.key} is trained on and held out: {str(both.prompt)[:200]!r}."
        )


def _draw_eval_tasks(tasks: Sequence[Task], count: int, seed: int) -> tuple[set[int], list[Task]]:
    """The places looked at, and `num_tasks` tasks of different keys found there."""
    if count < 0:
        raise ConfigError(f"held_out: {count}. Allowed: 0 or more.")
    order = iter(make_rng(seed, "held out").sample(range(len(tasks)), len(tasks)))
    drawn, kept = set[int](), dict[str, Task]()
    while len(kept) < count:
        place = next(order, None)
        if place is None:
            raise ConfigError(
                f"held_out: {count} different tasks were asked for, "
                f"the source has {len(kept)} among {len(tasks)}."
            )
        drawn.add(place)
        kept.setdefault(tasks[place].key, tasks[place])
    return drawn, list(kept.values())


def _load(source: TaskSource | Sequence[Task]) -> Sequence[Task]:
    return source if isinstance(source, Sequence) else source.load()
