"""A curriculum that distributes a step's rollouts over its tasks by expected gain."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from math import inf, isnan, log, nan

from grupo.core.component import check_field, component
from grupo.core.numbers import OpenFraction, PositiveInt
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Curriculum, CurriculumRequest
from grupo.rollouts.curricula.difficulty import expected_gain


@component
class LastSuccessRate(TaskStatistic):
    """The fraction of correct rollouts in a task's last group; NaN without one.

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
    """The tasks of `inner`, with group sizes in proportion to expected gain.

    p is the fraction of correct rollouts in a task's last group; a task without one gets
    `mean_group_size`. N rollouts of a task with 0 < p < 1 are worth
    (1 - p^N - (1 - p)^N) p (1 - p)^2; these tasks get `min_group_size` to `max_group_size`
    rollouts. Rollouts that they do not need to show both outcomes with probability `confidence` go
    to the tasks that were never solved, otherwise to those that always were. Knapsack RL, Li et al.
    (arXiv:2509.25849).

    Args:
        inner: The curriculum that chooses the tasks.
        mean_group_size: Rollouts per task on average.
        min_group_size: Fewest rollouts of a task.
        max_group_size: Most rollouts of a task, unless some would be left over.
        confidence: Probability in (0, 1), see above.
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
        rates = [request.history.task_history(task).state(statistic)[0] for task in tasks]
        group_sizes = self.allocate(rates)
        return [replace(task, group_size=n) for task, n in zip(tasks, group_sizes, strict=True)]

    def allocate(self, success_rates: Sequence[float]) -> Sequence[int]:
        """The group size of each task, from its success rate; NaN is an unknown rate."""
        counts = [self.mean_group_size if isnan(p) else self.min_group_size for p in success_rates]
        remaining = self.mean_group_size * len(success_rates) - sum(counts)
        mixed = {i: partial(_marginal_gain, p) for i, p in enumerate(success_rates) if 0 < p < 1}
        spare = max(0, remaining - sum(self._attempts_needed(success_rates[i]) for i in mixed))
        uniform_rate = [p for p in (0.0, 1.0) if p in success_rates][:1]
        uniform = {i: _fewest_first for i, p in enumerate(success_rates) if p in uniform_rate}
        remaining += _allocate_greedily(counts, spare, uniform, self.max_group_size) - spare
        remaining = _allocate_greedily(counts, remaining, mixed, self.max_group_size)
        every_task = dict.fromkeys(range(len(success_rates)), _fewest_first)
        _allocate_greedily(counts, remaining, every_task, inf)
        return counts

    def _attempts_needed(self, p: float) -> int:
        return int(min(self.max_group_size, log(1 - self.confidence) / log(max(p, 1 - p))))


def _marginal_gain(p: float, n: int) -> float:
    """Increase of a task's worth when its group grows from n rollouts to n + 1."""
    return (p**n * (1 - p) + (1 - p) ** n * p) * expected_gain(p)


def _fewest_first(n: int) -> float:
    """A gain that makes the smallest group grow first."""
    return -n


def _allocate_greedily(
    counts: list[int], remaining: int, gain: Mapping[int, Callable[[int], float]], max_count: float
) -> int:
    """Add `remaining` rollouts to `counts` one at a time, each where the next one gains most.

    Args:
        counts: Rollouts of each task; changed in place.
        remaining: Rollouts to distribute.
        gain: Gain of one more rollout as a function of the count, by index of the task.
        max_count: Largest count.

    Returns:
        The rollouts left over when all these tasks have reached `max_count`.
    """
    heap = [(-fn(counts[i]), i) for i, fn in gain.items() if counts[i] < max_count]
    heapify(heap)
    while remaining and heap:
        i = heappop(heap)[1]
        counts[i] += 1
        remaining -= 1
        if counts[i] < max_count:
            heappush(heap, (-gain[i](counts[i]), i))
    return remaining
