"""Attempts shared out among a step's tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from math import inf, isnan, log, nan

from grupo.core.batch import TaskHistory
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Curriculum, CurriculumRequest
from grupo.rollouts.curricula.difficulty import expected_gain


@component
class Knapsack:
    """The tasks of `inner`, `average` attempts each on average, where they promise most.

    p is the share right, above `right`, of a task's last group; where it has none, it gets the
    average. N attempts at a task of 0 < p < 1 are worth (1 - p^N - (1 - p)^N) p (1 - p)^2: each
    gets `low` to `high`. What such tasks do not need to show both outcomes with probability `confidence`
    goes to those that were never right, then to those that always were. Knapsack RL, Li et al.
    (arXiv:2509.25849).
    """

    inner: Curriculum
    mean_group_size: int = 8
    min_group_size: int = 2
    max_group_size: int = 128
    confidence: float = 0.9
    success_threshold: float = 0.5

    def __post_init__(self) -> None:
        if not self.min_group_size <= self.mean_group_size <= self.max_group_size:
            said = f"average: {self.mean_group_size}. Allowed: from low, {self.min_group_size}, to high, {self.max_group_size}."
            raise ConfigError(said)
        if not 0 < self.confidence < 1:
            raise ConfigError(f"sure: {self.confidence}. Allowed: above 0, below 1.")

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        tasks = self.inner(request)
        counts = self.allocate(
            [self._success_rate(request.history.task_history(task)) for task in tasks]
        )
        return [replace(task, group_size=n) for task, n in zip(tasks, counts, strict=True)]

    def allocate(self, success_rates: Sequence[float]) -> Sequence[int]:
        """How many attempts at tasks of these rates, NaN where it is not known."""
        counts = [self.mean_group_size if isnan(p) else self.min_group_size for p in success_rates]
        left = self.mean_group_size * len(success_rates) - sum(counts)
        open_ = {i: partial(_marginal_gain, p) for i, p in enumerate(success_rates) if 0 < p < 1}
        spare = max(0, left - sum(self._attempts_needed(success_rates[i]) for i in open_))
        dull = [p for p in (0.0, 1.0) if p in success_rates][:1]
        others = {i: _fewest_first for i, p in enumerate(success_rates) if p in dull}
        left += _allocate_greedily(counts, spare, others, self.max_group_size) - spare
        left = _allocate_greedily(counts, left, open_, self.max_group_size)
        _allocate_greedily(
            counts, left, dict.fromkeys(range(len(success_rates)), _fewest_first), inf
        )
        return counts

    def _success_rate(self, history: TaskHistory) -> float:
        last = history.rewards[-1] if history.rewards else ()
        return sum(r > self.success_threshold for r in last) / len(last) if last else nan

    def _attempts_needed(self, p: float) -> int:
        return int(min(self.max_group_size, log(1 - self.confidence) / log(max(p, 1 - p))))


def _marginal_gain(p: float, n: int) -> float:
    """By how much one attempt more than n makes it likelier that outcomes differ, times worth."""
    return (p**n * (1 - p) + (1 - p) ** n * p) * expected_gain(p)


def _fewest_first(n: int) -> float:
    return -n


def _allocate_greedily(
    counts: list[int], remaining: int, gain: Mapping[int, Callable[[int], float]], max_count: float
) -> int:
    """Give what is left, one at a time, to whom the next one gains most; say what nobody took."""
    heap = [(-of(counts[i]), i) for i, of in gain.items() if counts[i] < max_count]
    heapify(heap)
    while remaining and heap:
        i = heappop(heap)[1]
        counts[i], remaining = counts[i] + 1, remaining - 1
        if counts[i] < max_count:
            heappush(heap, (-gain[i](counts[i]), i))
    return remaining
