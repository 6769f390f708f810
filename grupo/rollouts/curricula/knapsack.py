"""Attempts shared out among a step's tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from math import inf, isnan, log, nan

from grupo.core.batch import Past
from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Ask, Curriculum
from grupo.rollouts.curricula.difficulty import promised


@piece
class Knapsack:
    """The tasks of `inner`, `average` attempts each on average, where they promise most.

    p is the share right, above `right`, of a task's last group; where it has none, it gets the
    average. N attempts at a task of 0 < p < 1 are worth (1 - p^N - (1 - p)^N) p (1 - p)^2: each
    gets `low` to `high`. What such tasks do not need to show both outcomes with probability `sure`
    goes to those that were never right, then to those that always were. Knapsack RL, Li et al.
    (arXiv:2509.25849).
    """

    inner: Curriculum
    average: int = 8
    low: int = 2
    high: int = 128
    sure: float = 0.9
    right: float = 0.5

    def __post_init__(self) -> None:
        if not self.low <= self.average <= self.high:
            said = f"average: {self.average}. Allowed: from low, {self.low}, to high, {self.high}."
            raise Refused(said)
        if not 0 < self.sure < 1:
            raise Refused(f"sure: {self.sure}. Allowed: above 0, below 1.")

    def __call__(self, ask: Ask) -> Sequence[Task]:
        tasks = self.inner(ask)
        counts = self.allotted([self._rate(ask.history.of(task)) for task in tasks])
        return [replace(task, attempts=n) for task, n in zip(tasks, counts, strict=True)]

    def allotted(self, rates: Sequence[float]) -> Sequence[int]:
        """How many attempts at tasks of these rates, NaN where it is not known."""
        counts = [self.average if isnan(p) else self.low for p in rates]
        left = self.average * len(rates) - sum(counts)
        open_ = {i: partial(_gained, p) for i, p in enumerate(rates) if 0 < p < 1}
        spare = max(0, left - sum(self._needed(rates[i]) for i in open_))
        dull = [p for p in (0.0, 1.0) if p in rates][:1]
        others = {i: _even for i, p in enumerate(rates) if p in dull}
        left += _deal(counts, spare, others, self.high) - spare
        left = _deal(counts, left, open_, self.high)
        _deal(counts, left, dict.fromkeys(range(len(rates)), _even), inf)
        return counts

    def _rate(self, past: Past) -> float:
        last = past.rewards[-1] if past.rewards else ()
        return sum(r > self.right for r in last) / len(last) if last else nan

    def _needed(self, p: float) -> int:
        return int(min(self.high, log(1 - self.sure) / log(max(p, 1 - p))))


def _gained(p: float, n: int) -> float:
    """By how much one attempt more than n makes it likelier that outcomes differ, times worth."""
    return (p**n * (1 - p) + (1 - p) ** n * p) * promised(p)


def _even(n: int) -> float:
    return -n


def _deal(
    counts: list[int], left: int, gain: Mapping[int, Callable[[int], float]], high: float
) -> int:
    """Give what is left, one at a time, to whom the next one gains most; say what nobody took."""
    heap = [(-of(counts[i]), i) for i, of in gain.items() if counts[i] < high]
    heapify(heap)
    while left and heap:
        i = heappop(heap)[1]
        counts[i], left = counts[i] + 1, left - 1
        if counts[i] < high:
            heappush(heap, (-gain[i](counts[i]), i))
    return left
