"""The curriculum interface, shuffled tasks, and dynamic sampling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from grupo.core.component import component
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Task
from grupo.rollouts.history import History
from grupo.util.rng import derive_key, make_rng


@dataclass(frozen=True)
class CurriculumRequest:
    """A request for the next tasks of a step.

    Args:
        tasks: All training tasks.
        history: The record of earlier steps, such as the statistics of each task.
        num_tasks: Number of tasks that the step still needs; 0 if it has enough.
        seed: Seed of the run.
        round_index: Number of earlier requests in the same step.
        groups: The groups of the step so far, without rollouts that failed.
    """

    tasks: Sequence[Task]
    history: History
    num_tasks: int
    seed: int
    round_index: int = 0
    groups: Sequence[Group] = ()


class Curriculum(Protocol):
    """Chooses the tasks to sample next; an empty sequence ends the step's sampling.

    A curriculum may set the group size of a task by `replace(task, group_size=n)`. A task with
    `extends_group` adds rollouts to the group that an earlier request of the step has begun. If
    these rollouts end in a later step, they are a group of their own.
    """

    def __call__(self, request: CurriculumRequest, /) -> Sequence[Task]: ...


@component
class ShuffledTasks:
    """Returns every task once per epoch, in a new random order for each epoch.

    Only the first request of a step returns tasks.
    """

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        return [] if request.round_index else next_tasks(request)


@component
class DynamicSampling:
    """Draws further tasks from `inner` in place of groups that the filter dropped.

    DAPO (arXiv:2503.14476), section 3.2.

    Args:
        inner: The curriculum to draw from.
        max_resample_rounds: Largest number of requests per step, the first included.
    """

    inner: Curriculum
    max_resample_rounds: PositiveInt

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.num_tasks > 0 and request.round_index < self.max_resample_rounds:
            return self.inner(replace(request, round_index=0))
        return []


@component
class UnfinishedFirst:
    """Returns the tasks with unfinished rollouts, the oldest first, and then tasks of `inner`.

    Args:
        inner: The curriculum that chooses the other tasks.
    """

    inner: Curriculum

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        history = request.history
        keys = [*history.unfinished_rollouts][: request.num_tasks]
        task_of = {task.key: task for task in request.tasks if task.key in keys} if keys else {}
        tasks_to_continue = [
            history.with_unfinished_rollouts(task_of[key]) for key in keys if key in task_of
        ]
        num_tasks = request.num_tasks - len(tasks_to_continue)
        others = self.inner(replace(request, num_tasks=num_tasks)) if num_tasks else []
        return [*tasks_to_continue, *others]


def next_tasks(request: CurriculumRequest) -> Sequence[Task]:
    """The next tasks of the shuffled epochs, after the tasks that were drawn so far."""
    count = len(request.tasks)
    start = request.history.num_tasks_drawn
    return [
        request.tasks[_shuffled_order(count, request.seed, place // count)[place % count]]
        for place in range(start, start + request.num_tasks)
    ]


@lru_cache(maxsize=4)
def _shuffled_order(count: int, seed: int, epoch: int) -> Sequence[int]:
    return make_rng(derive_key(seed, "tasks"), epoch).sample(range(count), count)
