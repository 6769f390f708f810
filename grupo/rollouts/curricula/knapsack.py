"""A curriculum that distributes a step's rollouts over its tasks by expected gain."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from math import isnan, log, nan

from grupo.core.component import check_field, component
from grupo.core.numbers import OpenFraction, PositiveInt
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Curriculum, CurriculumRequest
from grupo.rollouts.curricula.difficulty import task_gain


@component
class LastSuccessRate(TaskStatistic):
    """The fraction of correct rollouts in a task's last group; NaN for a task without a group.

    Args:
        success_threshold: A rollout is correct if its reward is above this.
    """

    success_threshold: float

    @property
    def initial_state(self) -> StatisticState:
        return (nan,)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        return (sum(r > self.success_threshold for r in group.rewards) / len(group.rewards),)


@component
class Knapsack:
    """The tasks of `inner`, with group sizes that maximise the expected gain of the step.

    p is the fraction of correct rollouts in a task's last group. A group of N rollouts of a task
    with 0 < p < 1 has the expected gain (1 - p^N - (1 - p)^N) p (1 - p)^2. This is the probability
    that the group has correct and incorrect rollouts, times the task's gain p (1 - p)^2. Such a
    task needs enough rollouts to show its rarer outcome with probability `confidence`. Rollouts
    that no task needs go to the tasks with p = 0, or, if there are none, to the tasks with p = 1. A
    task without a group has no p and gets `mean_group_size` rollouts. Knapsack RL, Li et al.
    (arXiv:2509.25849).

    Args:
        inner: The curriculum that chooses the tasks.
        mean_group_size: Rollouts per task on average.
        min_group_size: Fewest rollouts of a task.
        max_group_size: Most rollouts of a task.
        confidence: Probability with which a group shows its rarer outcome.
        success_threshold: A rollout is correct if its reward is above this.

    Raises:
        ConfigError: A group size or the confidence is out of range.
    """

    inner: Curriculum
    mean_group_size: PositiveInt = 8
    min_group_size: PositiveInt = 2
    max_group_size: PositiveInt = 128
    confidence: OpenFraction = 0.9
    success_threshold: float = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(task_statistics=(LastSuccessRate(self.success_threshold),))

    def __post_init__(self) -> None:
        low = self.min_group_size
        high = self.max_group_size
        allowed = f"from min_group_size, {low}, to max_group_size, {high}"
        check_field(self, "mean_group_size", low <= self.mean_group_size <= high, allowed)

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        tasks = self.inner(request)
        statistic = LastSuccessRate(self.success_threshold)
        rates = [request.history.statistics_of_task(task).state(statistic)[0] for task in tasks]
        group_sizes = self.allocate(rates)
        return [replace(task, group_size=n) for task, n in zip(tasks, group_sizes, strict=True)]

    def allocate(self, success_rates: Sequence[float]) -> Sequence[int]:
        """The group size of each task, from its success rate; NaN is an unknown rate."""
        rates = dict(enumerate(success_rates))  # by the index of the task
        sizes = [self.mean_group_size if isnan(p) else self.min_group_size for p in success_rates]
        remaining = self.mean_group_size * len(sizes) - sum(sizes)
        # by the index of the task: the gain of one more rollout, as a function of the group size,
        # for tasks whose last group had correct and incorrect rollouts, or rollouts of one kind
        gain_if_mixed = {i: partial(_gain_of_next, p) for i, p in rates.items() if 0 < p < 1}
        # as in the authors' code: these rollouts are needed in addition to `min_group_size`
        num_needed = sum(self._rollouts_needed(rates[i]) for i in gain_if_mixed)
        surplus = max(0, remaining - num_needed)  # rollouts that no task needs
        uniform_rate = 0.0 if 0.0 in success_rates else 1.0
        gain_if_uniform = {i: _smallest_first for i, p in rates.items() if p == uniform_rate}
        not_placed = _grow_groups(sizes, surplus, gain_if_uniform, self.max_group_size)
        remaining = remaining - surplus + not_placed
        remaining = _grow_groups(sizes, remaining, gain_if_mixed, self.max_group_size)
        every_task = dict.fromkeys(rates, _smallest_first)
        _grow_groups(sizes, remaining, every_task, self.max_group_size)
        return sizes

    def _rollouts_needed(self, p: float) -> int:
        """Number of rollouts that show the rarer outcome with probability `confidence`."""
        return int(min(self.max_group_size, log(1 - self.confidence) / log(max(p, 1 - p))))


def _gain_of_next(p: float, n: int) -> float:
    """Increase of a task's expected gain when its group grows from n rollouts to n + 1."""
    return (p**n * (1 - p) + (1 - p) ** n * p) * task_gain(p)


def _smallest_first(n: int) -> float:
    """A gain of the next rollout that makes the smallest group grow first."""
    return -n


def _grow_groups(
    sizes: list[int], budget: int, gain: Mapping[int, Callable[[int], float]], max_size: int
) -> int:
    """Distribute `budget` rollouts one at a time; each goes to the group that gains most.

    Args:
        sizes: Group size of each task, changed in place.
        budget: Number of rollouts to distribute.
        gain: For each task that may grow, by its index: the gain of one more rollout as a function
            of the group size.
        max_size: Largest group size.

    Returns:
        The number of rollouts that are not distributed. It is above 0 only if every group that may
        grow has `max_size` rollouts.
    """
    heap = [(-fn(sizes[i]), i) for i, fn in gain.items() if sizes[i] < max_size]
    heapify(heap)
    while budget and heap:
        i = heappop(heap)[1]
        sizes[i] += 1
        budget -= 1
        if sizes[i] < max_size:
            heappush(heap, (-gain[i](sizes[i]), i))
    return budget
