"""Training tasks and held-out tasks that have no question in common, by construction."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from grupo.core.errors import Refused
from grupo.core.rng import generator
from grupo.core.types import Task
from grupo.tasks.base import Indexed, TaskSource


@dataclass(frozen=True)
class Without(Sequence[Task]):
    """The tasks at `places`, those whose key is in `held_out` left out.

    Tasks that are made when asked for cannot be counted beforehand: where one of them turns out to
    be held out, the next that is not stands in for it.
    """

    tasks: Sequence[Task]
    places: Sequence[int]
    held_out: frozenset[str]

    def __post_init__(self) -> None:
        if not self.places or self._from(0) is None:
            raise Refused("Nothing is left to train on: every task of the source is held out.")

    @cached_property
    def excluded(self) -> int:
        """How many tasks of the source are left out of training; finding out reads them all."""
        return sum(task.key in self.held_out for task in self.tasks)

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        asked = range(len(self))[index]
        return [self[i] for i in asked] if isinstance(asked, range) else self._trainable(asked)

    def _trainable(self, index: int) -> Task:
        task = self._from(index)
        assert task is not None, "some task can be trained on, or there would be no such view"
        return task

    def _from(self, index: int) -> Task | None:
        """The first task from `index` on, round the end, that is not held out."""
        order = (self.places[(index + i) % len(self)] for i in range(len(self)))
        tasks = (self.tasks[place] for place in order)
        return next((task for task in tasks if task.key not in self.held_out), None)


def split(
    source: TaskSource | Sequence[Task], held_out: int | TaskSource | Sequence[Task], seed: int = 0
) -> tuple[Without, Sequence[Task]]:
    """Tasks to train on, and held-out tasks that are none of them: so many, or a source's.

    >>> from grupo.tasks.reasoning_gym import ReasoningGym
    >>> train, test = split(ReasoningGym("chain_sum", size=50), 10)
    >>> len(train), len(test), {task.key for task in train} & {task.key for task in test}
    (40, 10, set())
    """
    tasks, drawn = _loaded(source), set[int]()
    if isinstance(held_out, int):
        drawn, kept = _draw(tasks, held_out, seed)
    else:
        kept = list(_loaded(held_out))
    keys = frozenset(task.key for task in kept)
    if not isinstance(tasks, Indexed):  # all in memory: what is held out is known
        drawn = {place for place, task in enumerate(tasks) if task.key in keys}
    places = array("q", (i for i in range(len(tasks)) if i not in drawn))
    return Without(tasks, places, keys), kept


def check_disjoint(train: Sequence[Task], held_out: Sequence[Task], sample: int = 1000) -> None:
    """Refuse when any of `sample` training tasks, evenly spaced, is held out as well."""
    keys = {task.key for task in held_out}
    step = max(1, len(train) // sample)
    both = next((task for task in train[::step] if task.key in keys), None)
    if both is not None:
        raise Refused(f"Task {both.key} is trained on and held out: {str(both.prompt)[:200]!r}.")


def _draw(tasks: Sequence[Task], wanted: int, seed: int) -> tuple[set[int], list[Task]]:
    """The places looked at, and `wanted` tasks of different keys found there."""
    if wanted < 0:
        raise Refused(f"held_out: {wanted}. Allowed: 0 or more.")
    order = iter(generator(seed, "held out").sample(range(len(tasks)), len(tasks)))
    drawn, kept = set[int](), dict[str, Task]()
    while len(kept) < wanted:
        place = next(order, None)
        if place is None:
            raise Refused(
                f"held_out: {wanted} different tasks were asked for, "
                f"the source has {len(kept)} among {len(tasks)}."
            )
        drawn.add(place)
        kept.setdefault(tasks[place].key, tasks[place])
    return drawn, list(kept.values())


def _loaded(source: TaskSource | Sequence[Task]) -> Sequence[Task]:
    return source if isinstance(source, Sequence) else source.load()
