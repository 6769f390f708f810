"""Curricula: which tasks come next, and how many attempts each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from grupo.batch import Past
from grupo.history import History
from grupo.piece import piece
from grupo.randomness import derive, generator
from grupo.rollout import Task


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


@piece
class Undecided:
    """Tasks without replacement, in proportion to sqrt(v (1 - v)) + 0.05; asked once a step.

    v is `tracked`. Single-stream PO (arXiv:2509.13232).
    """

    forget: float

    def __call__(self, ask: Ask) -> Sequence[Task]:
        rng = generator(ask.seed, "undecided", ask.history.asked)
        v = [tracked(ask.history.of(task), self.forget) for task in ask.tasks]
        keys = [rng.random() ** (1 / (max(p * (1 - p), 0.0) ** 0.5 + 0.05)) for p in v]
        order = sorted(range(len(keys)), key=lambda i: -keys[i])
        return [] if ask.round else [ask.tasks[i] for i in order[: ask.wanted]]


def tracked(past: Past, forget: float) -> float:
    """al / (al + be), born as 1/2 each; a reward makes them forget al + r and forget be + 1 - r.

    The mean of a Beta that follows how often a task is solved, rewards in [0, 1].

    >>> tracked(Past((0,), ((1.0,),)), forget=0.5)
    0.8333333333333334
    """
    al = be = 0.5
    for r in (reward for rewards in past.rewards for reward in rewards):
        al, be = forget * al + r, forget * be + 1 - r
    return al / (al + be)


def upcoming(ask: Ask) -> Sequence[Task]:
    """The next tasks of the endless shuffled sequence, counted by the tasks asked so far."""
    count = len(ask.tasks)
    places = range(ask.history.asked, ask.history.asked + ask.wanted)
    return [ask.tasks[_order(count, ask.seed, place // count)[place % count]] for place in places]


@lru_cache(maxsize=4)
def _order(count: int, seed: int, epoch: int) -> Sequence[int]:
    return generator(derive(seed, "tasks"), epoch).sample(range(count), count)
