"""Disjoint training and evaluation tasks."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, cast

import numpy as np

from grupo.core.component import component
from grupo.core.ranges import FractionBelowOne, PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSequence, TaskSource
from grupo.tasks.in_memory import as_task_source
from grupo.tasks.table_tasks import TableTasks, task_keys
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng


@component
class EvalShare:
    """A share of the tasks to hold out: at least one of two or more, and at most `max_tasks`.

    Args:
        fraction: Share of the different tasks of the source.
        max_tasks: Largest number of tasks to hold out.

    >>> EvalShare().count(5_000), EvalShare().count(42), EvalShare().count(2), EvalShare().count(1)
    (200, 4, 1, 0)
    """

    fraction: FractionBelowOne = 0.1
    max_tasks: PositiveInt = 200

    def count(self, num_tasks: int) -> int:
        """The number of tasks to hold out of `num_tasks` different ones."""
        share = max(1, int(self.fraction * num_tasks))
        return min(self.max_tasks, share, num_tasks - 1)


@dataclass(frozen=True)
class TrainingTasks(TaskSequence):
    """The tasks of a source without the evaluation tasks.

    The keys of lazy tasks are unknown until the tasks are made: an evaluation task among them is
    replaced by the next task that is none.

    Args:
        tasks: All tasks of the source.
        indices: Indices of the training tasks in `tasks`.
        excluded_keys: Keys of the evaluation tasks.
    """

    tasks: Sequence[Task]
    indices: Sequence[int]
    excluded_keys: frozenset[str]

    def __post_init__(self) -> None:
        if not self.indices or self._next_training_task(0) is None:
            raise ConfigError(
                "No training tasks are left: every task of the source is an evaluation task."
            )

    @cached_property
    def num_excluded(self) -> int:
        """Number of tasks of the source that are left out of training; makes all lazy tasks."""
        return sum(key in self.excluded_keys for key in task_keys(self.tasks))

    def __len__(self) -> int:
        return len(self.indices)

    def task_at(self, index: int) -> Task:
        task = self._next_training_task(index)
        assert task is not None, "the constructor found a training task"
        return task

    def _next_training_task(self, index: int) -> Task | None:
        """The first training task from `index` on, wrapping around; None if there is none."""
        order = (self.indices[(index + i) % len(self)] for i in range(len(self)))
        tasks = (self.tasks[i] for i in order)
        return next((task for task in tasks if task.key not in self.excluded_keys), None)


def split_tasks(
    source: TaskSource | Iterable[Any],
    eval_tasks: int | EvalShare | TaskSource | Iterable[Any],
    seed: int = 0,
) -> tuple[TrainingTasks, Sequence[Task]]:
    """Split a source into training tasks and evaluation tasks, which have no prompt in common.

    Args:
        source: Source of the training tasks, or the tasks, or a table in memory.
        eval_tasks: Number or share of evaluation tasks to draw from `source`, or their own source.
        seed: Seed of the draws.

    >>> from grupo.tasks.reasoning_gym import ReasoningGym
    >>> train, evaluation = split_tasks(ReasoningGym("chain_sum", size=50), 10)
    >>> shared = {task.key for task in train} & {task.key for task in evaluation}
    >>> len(train), len(evaluation), shared
    (40, 10, set())
    """
    tasks = _load(source)
    excluded = set[int]()
    if isinstance(eval_tasks, EvalShare):
        eval_tasks = eval_tasks.count(_count_different(tasks))
    if isinstance(eval_tasks, int):
        excluded, evaluation = _draw_eval_tasks(tasks, eval_tasks, seed)
    else:
        loaded = _load(eval_tasks)
        evaluation = loaded if isinstance(loaded, TableTasks) else list(loaded)
    keys = frozenset(task_keys(evaluation))
    if not isinstance(tasks, LazyTasks):  # all keys are known
        excluded = {i for i, key in enumerate(task_keys(tasks)) if key in keys}
    kept = np.delete(np.arange(len(tasks), dtype=np.int64), np.fromiter(excluded, np.int64))
    indices = array("q", kept.tobytes())
    return TrainingTasks(tasks, indices, keys), evaluation


def held_out_rows(
    source: TaskSource | Iterable[Any],
    eval_tasks: int | EvalShare | TaskSource | Iterable[Any],
    seed: int = 0,
) -> list[Task]:
    """All rows of the evaluation tasks, such as several answers to one prompt.

    Args:
        source: As for `split_tasks`, which holds out the tasks.
        eval_tasks: As for `split_tasks`.
        seed: As for `split_tasks`.

    >>> rows = [Task(key, key, location=place) for key, place in (("a", "1"), ("a", "2"))]
    >>> [task.location for task in held_out_rows([*rows, Task("a", "a"), Task("b", "b")], 1, 1)]
    ['1', '2', '']
    """
    training, evaluation = split_tasks(source, eval_tasks, seed)
    if not isinstance(eval_tasks, int | EvalShare):
        return list(evaluation)
    return [task for task in training.tasks if task.key in training.excluded_keys]


def check_disjoint(
    train_tasks: Sequence[Task], eval_tasks: Sequence[Task], max_checked: int = 1000
) -> None:
    """Raises `ConfigError` if a training task is an evaluation task as well.

    Args:
        train_tasks: The training tasks, of which at most about `max_checked` evenly spaced ones
            are checked.
        eval_tasks: The evaluation tasks.
        max_checked: Number of training tasks to check.
    """
    keys = {task.key for task in eval_tasks}
    step = max(1, len(train_tasks) // max_checked)
    shared = next((task for task in train_tasks[::step] if task.key in keys), None)
    if shared is not None:
        raise ConfigError(
            f"Task {shared.key} is a training task and an evaluation task:"
            f" {str(shared.prompt)[:200]!r}."
        )


def _draw_eval_tasks(tasks: Sequence[Task], count: int, seed: int) -> tuple[set[int], list[Task]]:
    """Draw `count` tasks of different keys; returns all drawn indices, and the tasks."""
    if count < 0:
        raise ConfigError(f"eval_tasks: {count}. Allowed: 0 or more.")
    order = _shuffled(len(tasks), make_rng(seed, "held out"))
    drawn = set[int]()
    by_key: dict[str, Task] = {}
    while len(by_key) < count and (index := next(order, None)) is not None:
        drawn.add(index)
        by_key.setdefault(tasks[index].key, tasks[index])
    if count and all(tasks[index].key in by_key for index in order):
        raise ConfigError(
            f"eval_tasks: {count}. Allowed: at most {len(by_key) - 1}, one less than the different"
            f" tasks among the source's {len(tasks)}. Write --eval-tasks NUMBER, or leave it out: a"
            " tenth of the tasks is held out."
        )
    return drawn, list(by_key.values())


def _count_different(tasks: Sequence[Task]) -> int:
    """The number of different tasks; of lazy tasks, whose keys are unknown, the number of all."""
    return len(tasks) if isinstance(tasks, LazyTasks) else len({task.key for task in tasks})


def _shuffled(size: int, rng: Random) -> Iterator[int]:
    """The numbers below `size` in the order of `rng.sample`, without a list of all of them."""
    moved: dict[int, int] = {}
    for left in range(size, 0, -1):
        place = rng.randrange(left)
        yield moved.get(place, place)
        moved[place] = moved.pop(left - 1, left - 1)


def _load(source: TaskSource | Iterable[Any]) -> Sequence[Task]:
    """The tasks of a source; a sequence of tasks that are loaded as it is."""
    is_loaded = isinstance(source, TaskSequence) or (
        isinstance(source, Sequence) and all(isinstance(task, Task) for task in source)
    )
    return cast(Sequence[Task], source) if is_loaded else as_task_source(source).load()
