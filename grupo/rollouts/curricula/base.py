"""The seam between tasks and steps, and tasks in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from grupo.core.component import piece
from grupo.core.rng import derive, generator
from grupo.core.types import Task
from grupo.rollouts.history import History


@dataclass(frozen=True)
class Ask:
    """What a curriculum is asked: `wanted` of `tasks`, for the `round`-th time in one step."""

    tasks: Sequence[Task]
    history: History
    wanted: int
    seed: int
    round: int = 0


class Curriculum(Protocol):
    """Tasks to sample next; none ends the step's sampling.

    `replace(task, attempts=n)` asks for n rollouts.
    """

    def __call__(self, ask: Ask, /) -> Sequence[Task]: ...


@piece
class Shuffled:
    """Every task once before any comes again, reshuffled each time round; asked once a step."""

    def __call__(self, ask: Ask) -> Sequence[Task]:
        return [] if ask.round else upcoming(ask)


@piece
class Refilled:
    """Ask `inner` again for what curation left missing, `rounds` times in all.

    DAPO (arXiv:2503.14476), section 3.2.
    """

    inner: Curriculum
    rounds: int

    def __call__(self, ask: Ask) -> Sequence[Task]:
        return (
            self.inner(replace(ask, round=0)) if ask.wanted > 0 and ask.round < self.rounds else []
        )


def upcoming(ask: Ask) -> Sequence[Task]:
    """The next tasks of the endless shuffled sequence, counted by the tasks asked so far."""
    count = len(ask.tasks)
    places = range(ask.history.asked, ask.history.asked + ask.wanted)
    return [ask.tasks[_order(count, ask.seed, place // count)[place % count]] for place in places]


@lru_cache(maxsize=4)
def _order(count: int, seed: int, epoch: int) -> Sequence[int]:
    return generator(derive(seed, "tasks"), epoch).sample(range(count), count)
