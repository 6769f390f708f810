"""The data of a run that the checks read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from grupo.core.dtypes import logp_rounding
from grupo.report.checks.group_summary import GroupSummary
from grupo.report.read_run import MetricSeries, Record, metric_series
from grupo.rollouts.evaluate import SuccessCriterion

MIN_STEPS = 3  # fewer steps show no trend
RECENT_STEPS = 10  # the window of recent steps: long enough to average, short enough to be current
MAX_LOGP_DIFF = 0.01  # nats: two orders of magnitude above rounding in float32
NEAR_BEST_FRAC = 0.95  # of the best reward: the rest is sampling noise


@dataclass(frozen=True)
class RunFiles:
    """The state of a run's files.

    Args:
        torn_journals: names of the journals whose last line is incomplete.
        missing_fields: required fields that lines of a journal lack.
        is_locked: a process trains in the folder.
        seconds_since_write: seconds since a journal was last written.
    """

    torn_journals: tuple[str, ...] = ()
    missing_fields: tuple[str, ...] = ()
    is_locked: bool = False
    seconds_since_write: float = 0.0


@dataclass(frozen=True)
class RunData:
    """Metrics of every step, groups, summary, recipe and file state; each may be empty."""

    steps: tuple[Mapping[str, float], ...] = ()
    groups: tuple[GroupSummary, ...] = ()
    summary: Record = field(default_factory=dict)
    recipe: Record = field(default_factory=dict)
    files: RunFiles = RunFiles()

    def __call__(self, name: str) -> MetricSeries:
        """The series of a metric."""
        return metric_series(self.steps, name)

    def metric_names(self, prefix: str = "") -> list[str]:
        """The names of the metrics that begin with `prefix`."""
        return list(dict.fromkeys(n for m in self.steps for n in m if n.startswith(prefix)))

    @property
    def max_logp_diff(self) -> float:
        """The largest healthy mean difference of sampler and trainer, in nats."""
        return max(MAX_LOGP_DIFF, logp_rounding(self.recipe.get("policy")))

    @property
    def window(self) -> int:
        """Steps in the first and last window: a tenth of the run, from 3 to `RECENT_STEPS`."""
        return min(RECENT_STEPS, max(3, len(self.steps) // 10))

    def first_window(self, name: str) -> MetricSeries:
        """A metric in the first window."""
        return self(name).first(self.window)

    def last_window(self, name: str) -> MetricSeries:
        """A metric in the last window."""
        return self(name).last(self.window)

    @property
    def success(self) -> SuccessCriterion:
        """Decides whether a rollout solves its task; the reward term is "" if none is named."""
        evaluation = self.recipe.get("evaluation")
        fields = evaluation.get("success") if isinstance(evaluation, dict) else None
        if not isinstance(fields, dict):
            return SuccessCriterion()
        names = ("reward_term", "min_reward")
        return SuccessCriterion(**{name: fields[name] for name in names if name in fields})

    @property
    def recent_groups(self) -> tuple[GroupSummary, ...]:
        """The groups of the last `RECENT_STEPS` steps."""
        last = self.groups[-1].step if self.groups else 0
        return tuple(group for group in self.groups if group.step > last - RECENT_STEPS)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and the highest reward of any rollout."""
        rewards = [reward for group in self.groups for reward in group.rewards]
        return min(rewards, default=0.0), max(rewards, default=0.0)

    @property
    def is_near_best(self) -> bool:
        """True if the recent mean reward is near 1, or near the highest reward if that is more."""
        best = max(1.0, self.reward_range[1])
        return self.last_window("reward/mean").mean >= NEAR_BEST_FRAC * best

    def standard_error(self, name: str) -> float:
        """The standard error of the difference between the means of two windows.

        It is estimated from differences of consecutive steps, so that a trend is not noise.
        """
        squares = [(b - a) ** 2 for a, b in pairwise(self(name).values)]
        return math.sqrt(sum(squares) / max(1, len(squares)) / self.window)


def within_group_correlation(groups: Sequence[GroupSummary], field: str) -> float:
    """Pearson correlation of rewards and another field within groups; NaN if either is constant.

    Args:
        groups: the groups; values are centred in each of them.
        field: a field of `GroupSummary` with a number per scored rollout.
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
