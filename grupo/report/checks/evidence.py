"""What a run left behind, as checks read it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from grupo.report.reading import Record, Series, check, metrics, records, series, summary

RECENT = 10  # steps that say how a run is now: long enough to average, short enough to be now
NEARLY = 0.95  # of the best reward: what is left is luck of sampling


@dataclass(frozen=True)
class Answers:
    """A group as the journal holds it: what its rollouts earned, and how many texts they are."""

    step: int
    rewards: tuple[float, ...]  # of those that were judged
    texts: int = 0  # different ones
    count: int = 0
    failures: tuple[str, ...] = ()  # why rollouts could not be judged
    covered: int = 0  # rollouts that failed and were given a reward all the same


@dataclass(frozen=True)
class Evidence:
    """The metrics of every step, the groups, the summary: any of them may be empty."""

    steps: tuple[Mapping[str, float], ...] = ()
    groups: tuple[Answers, ...] = ()
    summary: Record = field(default_factory=dict)

    def __call__(self, name: str) -> Series:
        """A metric over the steps that have it."""
        return series(self.steps, name)

    def names(self, prefix: str) -> list[str]:
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


def gather(folder: Path) -> Evidence:
    """What the run in a folder left behind until now; texts are counted, not kept."""
    lines = records(check(folder) / "rollouts.jsonl")
    groups = groupby(lines, key=lambda r: (r["step"], r["task"]))
    answers = tuple(_answers(step, list(rollouts)) for (step, _), rollouts in groups)
    return Evidence(metrics(folder), answers, summary(folder))


def _answers(step: int, rollouts: Sequence[Record]) -> Answers:
    judged = [r for r in rollouts if not r["failed"]]
    return Answers(
        step,
        tuple(float(r["reward"]) for r in judged),
        len({r["text"] for r in rollouts}),
        len(rollouts),
        tuple(r["failed"] for r in rollouts if r["failed"]),
        sum(float(r["parts"].get("failed", 0.0)) > 0 for r in judged),
    )
