"""Processes that update: each evaluates its rows, all exchange gradients, and the first logs."""

from collections.abc import Sequence

import numpy as np

from grupo.evidence.simulate.costs import Costs
from grupo.evidence.simulate.generation import Group

MAX_IMBALANCE = 1.1  # of the largest load of a rank and the mean, above which rows are moved
BARRIERS = 8  # exchanges of a step in which ranks wait for each other, besides the gradients


class Trainers:
    """The ranks of an update.

    Args:
        costs: Seconds of each phase.
        count: Number of ranks.
    """

    def __init__(self, costs: Costs, count: int) -> None:
        self.costs = costs
        self.own_left = np.zeros(count)  # seconds of each rank for its own rows
        self.common_left = 0.0  # seconds of all ranks afterwards
        self.log_left = 0.0  # seconds of the first rank after that
        self.busy = 0.0  # seconds of updates since the start

    @property
    def updating(self) -> bool:
        """Whether an update has not ended."""
        return bool(self.active.any())

    @property
    def active(self) -> np.ndarray:
        """Which ranks work."""
        own = self.own_left > 0
        if own.any():
            return own
        if self.common_left:
            return np.ones_like(own)
        return (np.arange(len(own)) == 0) & (self.log_left > 0)

    def begin(self, groups: Sequence[tuple[int, Group]], *, stale: bool) -> None:
        """Begin the update on groups, each with the number of the rank that generated it.

        Args:
            groups: Rank and group.
            stale: Whether rollouts may be older than the weights that are updated.
        """
        costs, ranks = self.costs, len(self.own_left)
        loads = np.zeros(ranks)
        for rank, group in groups:
            loads[rank] += sum(rollout.tokens for rollout in group)
        step = costs.update_step + costs.stale_step * stale
        token = costs.update_token + costs.stale_token * stale
        balanced = _balanced(loads)
        moved = np.maximum(balanced - loads, 0.0) * costs.uncached_token * (not stale)
        self.own_left[:] = (step + token * balanced + moved) * bool(groups)
        rollouts = sum(len(group) for _, group in groups)
        exchanges = costs.barrier * BARRIERS * (ranks > 1)
        gradients = costs.gradient_sum * 2 * (ranks - 1) / ranks
        self.common_left = max(costs.batch_row * rollouts + gradients + exchanges, 1e-9)
        self.log_left = costs.log_token * loads.sum()

    def until_event(self, speed: float) -> float:
        """Seconds until a rank has evaluated its rows, or the update ends."""
        left = self.own_left[self.own_left > 0]
        afterwards = self.common_left or self.log_left or np.inf
        return float(left.min() if len(left) else afterwards) / speed

    def advance(self, seconds: float, speed: float) -> bool:
        """Work for some seconds, at most until the next event; whether the update ended."""
        if not self.updating:
            return False
        self.busy += seconds
        work = seconds * speed
        own = self.own_left > 0
        if own.any():
            left = self.own_left[own] - work
            self.own_left[own] = np.where(left <= work * 1e-9, 0.0, left)
            return False
        if self.common_left:
            self.common_left = _left(self.common_left, work)
        else:
            self.log_left = _left(self.log_left, work)
        return not self.updating


def _left(seconds: float, work: float) -> float:
    return 0.0 if seconds <= work * (1 + 1e-9) else seconds - work


def _balanced(loads: np.ndarray) -> np.ndarray:
    """Tokens of each rank after rows were moved from ranks with more than the allowed imbalance.

    >>> _balanced(np.array([10.0, 10.0])), _balanced(np.array([30.0, 10.0]))
    (array([10., 10.]), array([20., 20.]))
    """
    mean = loads.mean()
    return loads if loads.max() <= MAX_IMBALANCE * mean else np.full(len(loads), mean)
