"""What a run left behind, as checks read it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from grupo.report.checks.group_summary import GroupSummary
from grupo.report.read_run import MetricSeries, Record, metric_series

MIN_STEPS = 3  # steps: fewer are no series
RECENT_STEPS = 10  # steps that say how a run is now: long enough to average, short enough to be now
NEAR_BEST_FRAC = 0.95  # of the best reward: what is left is luck of sampling


@dataclass(frozen=True)
class RunFiles:
    """What a run's folder says of itself: whether it is whole, and whether anybody works in it."""

    torn_journals: tuple[str, ...] = ()  # journals whose last line is not whole
    missing_fields: tuple[str, ...] = ()  # names that lines of a journal should have, and do not
    is_locked: bool = False  # does a process train there?
    seconds_since_write: float = 0.0  # seconds since the last line


@dataclass(frozen=True)
class RunData:
    """The metrics of every step, the groups, the summary, the recipe: any of them may be empty."""

    steps: tuple[Mapping[str, float], ...] = ()
    groups: tuple[GroupSummary, ...] = ()
    summary: Record = field(default_factory=dict)
    recipe: Record = field(default_factory=dict)
    files: RunFiles = RunFiles()

    def __call__(self, name: str) -> MetricSeries:
        """A metric over the steps that have it."""
        return metric_series(self.steps, name)

    def metric_names(self, prefix: str = "") -> list[str]:
        """The metrics whose names begin so."""
        return list(dict.fromkeys(n for m in self.steps for n in m if n.startswith(prefix)))

    @property
    def window(self) -> int:
        """How many steps the beginning and the end of the run are: a tenth, at least 3, at most
        RECENT."""
        return min(RECENT_STEPS, max(3, len(self.steps) // 10))

    def first_window(self, name: str) -> MetricSeries:
        """A metric at the beginning."""
        return self(name).first(self.window)

    def last_window(self, name: str) -> MetricSeries:
        """A metric at the end."""
        return self(name).last(self.window)

    @property
    def recent_groups(self) -> tuple[GroupSummary, ...]:
        """The groups of the last steps."""
        last = self.groups[-1].step if self.groups else 0
        return tuple(group for group in self.groups if group.step > last - RECENT_STEPS)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the most that a rollout ever earned."""
        seen = [reward for group in self.groups for reward in group.rewards]
        return min(seen, default=0.0), max(seen, default=0.0)

    @property
    def is_near_best(self) -> bool:
        """Do nearly all rollouts earn 1, or the most that any ever earned if that is more?"""
        return self.last_window("reward/mean").mean >= NEAR_BEST_FRAC * max(
            1.0, self.reward_range[1]
        )

    def standard_error(self, name: str) -> float:
        """How far the means of two windows of `width` steps lie apart by chance: a standard error.

        Of jumps from step to step, so that the course of the run does not count as chance.
        """
        squares = [(b - a) ** 2 for a, b in pairwise(self(name).values)]
        return math.sqrt(sum(squares) / max(1, len(squares)) / self.window)


def within_group_correlation(groups: Sequence[GroupSummary], field: str) -> float:
    """Correlation of the rewards with another number of each rollout, within groups; NaN of none.

    `name` is that of a field of `GroupSummary` that has a number for each judged rollout.
    """
    pairs = [
        (x, y)
        for group in groups
        for x, y in zip(_centred(group.rewards), _centred(getattr(group, field)), strict=False)
    ]
    spread = sum(x * x for x, _ in pairs) * sum(y * y for _, y in pairs)
    return sum(x * y for x, y in pairs) / math.sqrt(spread) if spread > 0 else math.nan


def _centred(values: Sequence[float]) -> list[float]:
    middle = sum(values) / len(values) if values else 0.0
    return [value - middle for value in values]
