"""What a run left behind, as checks read it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from grupo.report.checks.group_summary import Answers
from grupo.report.read_run import Record, Series, series

FEWEST = 3  # steps: fewer are no series
RECENT = 10  # steps that say how a run is now: long enough to average, short enough to be now
NEARLY = 0.95  # of the best reward: what is left is luck of sampling


@dataclass(frozen=True)
class Files:
    """What a run's folder says of itself: whether it is whole, and whether anybody works in it."""

    torn: tuple[str, ...] = ()  # journals whose last line is not whole
    lacking: tuple[str, ...] = ()  # names that lines of a journal should have, and do not
    held: bool = False  # does a process train there?
    silent: float = 0.0  # seconds since the last line


@dataclass(frozen=True)
class Evidence:
    """The metrics of every step, the groups, the summary, the recipe: any of them may be empty."""

    steps: tuple[Mapping[str, float], ...] = ()
    groups: tuple[Answers, ...] = ()
    summary: Record = field(default_factory=dict)
    recipe: Record = field(default_factory=dict)
    files: Files = Files()

    def __call__(self, name: str) -> Series:
        """A metric over the steps that have it."""
        return series(self.steps, name)

    def names(self, prefix: str = "") -> list[str]:
        """The metrics whose names begin so."""
        return list(dict.fromkeys(n for m in self.steps for n in m if n.startswith(prefix)))

    @property
    def width(self) -> int:
        """How many steps the beginning and the end of the run are: a tenth, at least 3, at most
        RECENT."""
        return min(RECENT, max(3, len(self.steps) // 10))

    def begin(self, name: str) -> Series:
        """A metric at the beginning."""
        return self(name).first(self.width)

    def end(self, name: str) -> Series:
        """A metric at the end."""
        return self(name).last(self.width)

    @property
    def recent(self) -> tuple[Answers, ...]:
        """The groups of the last steps."""
        last = self.groups[-1].step if self.groups else 0
        return tuple(group for group in self.groups if group.step > last - RECENT)

    @property
    def earned(self) -> tuple[float, float]:
        """The least and the most that a rollout ever earned."""
        seen = [reward for group in self.groups for reward in group.rewards]
        return min(seen, default=0.0), max(seen, default=0.0)

    @property
    def perfect(self) -> bool:
        """Do nearly all rollouts earn 1, or the most that any ever earned if that is more?"""
        return self.end("reward/mean").mean >= NEARLY * max(1.0, self.earned[1])

    def error(self, name: str) -> float:
        """How far the means of two windows of `width` steps lie apart by chance: a standard error.

        Of jumps from step to step, so that the course of the run does not count as chance.
        """
        squares = [(b - a) ** 2 for a, b in pairwise(self(name).values)]
        return math.sqrt(sum(squares) / max(1, len(squares)) / self.width)


def alike(groups: Sequence[Answers], name: str) -> float:
    """Correlation of the rewards with another number of each rollout, within groups; NaN of none.

    `name` is that of a field of `Answers` that has a number for each judged rollout.
    """
    pairs = [
        (x, y)
        for group in groups
        for x, y in zip(_centred(group.rewards), _centred(getattr(group, name)), strict=False)
    ]
    spread = sum(x * x for x, _ in pairs) * sum(y * y for _, y in pairs)
    return sum(x * y for x, y in pairs) / math.sqrt(spread) if spread > 0 else math.nan


def _centred(values: Sequence[float]) -> list[float]:
    middle = sum(values) / len(values) if values else 0.0
    return [value - middle for value in values]
