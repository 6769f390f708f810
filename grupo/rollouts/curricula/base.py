"""The seam between tasks and steps, and tasks in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from grupo.core.component import component
from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Task
from grupo.rollouts.history import History


@dataclass(frozen=True)
class CurriculumRequest:
    """What a curriculum is asked: `num_tasks` of `tasks`, for the `round`-th time in one step."""

    tasks: Sequence[Task]
    history: History
    num_tasks: int
    seed: int
    resample_round: int = 0


class Curriculum(Protocol):
    """Tasks to sample next; none ends the step's sampling.

    `replace(task, attempts=n)` asks for n rollouts.
    """

    def __call__(self, request: CurriculumRequest, /) -> Sequence[Task]: ...


@component
class ShuffledTasks:
    """Every task once before any comes again, reshuffled each time round; asked once a step."""

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        return [] if request.resample_round else next_tasks(request)


@component
class DynamicSampling:
    """Ask `inner` again for what curation left missing, `max_resample_rounds` times in all.

    DAPO (arXiv:2503.14476), section 3.2.
    """

    inner: Curriculum
    max_resample_rounds: int

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        return (
            self.inner(replace(request, resample_round=0))
            if request.num_tasks > 0 and request.resample_round < self.max_resample_rounds
            else []
        )


def next_tasks(request: CurriculumRequest) -> Sequence[Task]:
    """The next tasks of the endless shuffled sequence, counted by the tasks asked so far."""
    count = len(request.tasks)
    places = range(request.history.tasks_drawn, request.history.tasks_drawn + request.num_tasks)
    return [
        request.tasks[_shuffled_order(count, request.seed, place // count)[place % count]]
        for place in places
    ]


@lru_cache(maxsize=4)
def _shuffled_order(count: int, seed: int, epoch: int) -> Sequence[int]:
    return make_rng(derive_key(seed, "tasks"), epoch).sample(range(count), count)
