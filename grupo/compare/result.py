"""What a comparison came to: per recipe the means, per difference how sure it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grupo.compare.experiment import METRICS, Comparison
from grupo.compare.run_status import FINISHED, Outcome
from grupo.core import statistics
from grupo.core.component import show
from grupo.core.statistics import LEVEL, Interval, Strata

NORMAL, NOTHING = ", if differences are normal", "not told apart"


@dataclass(frozen=True)
class Line:
    """A recipe on one task set, or on all of them: its runs, and the mean of every metric."""

    name: str
    task_set: str
    runs: int
    finished: int
    means: Mapping[str, Interval]

    @property
    def sets(self) -> tuple[str, ...]:
        """The task set it is of; none says all of them."""
        return (self.task_set,) if self.task_set else ()


@dataclass(frozen=True)
class Difference:
    """A recipe against the baseline, run by run of the same seed on the same tasks."""

    name: str
    pairs: int
    by: Interval
    improvement: Interval
    signs: float  # p, by the signs of the pairs
    student: float  # p, if differences are normal
    signs_of_many: float  # the same, corrected for all comparisons
    student_of_many: float

    @property
    def verdict(self) -> str:
        """Whether it survives the correction, and under what."""
        way = "more" if self.by.value > 0 else "less"
        if self.signs_of_many <= 1 - LEVEL:
            return way
        return way + NORMAL if self.student_of_many <= 1 - LEVEL else NOTHING


@dataclass(frozen=True)
class Result:
    """All that was measured, and what follows from it."""

    comparison: Comparison
    outcomes: Sequence[Outcome]

    @property
    def metric(self) -> str:
        """What differences are taken in."""
        return self.comparison.metric

    @cached_property
    def lines(self) -> list[Line]:
        """Every recipe, the highest first; with several task sets all of them, then each."""
        sets = self.comparison.sets
        shown = [("", sets), *((name, (name,)) for name in sets if len(sets) > 1)]
        found = [
            self._line(name, called, inside)
            for called, inside in shown
            for name in self.comparison.recipes
        ]
        places = [called for called, _ in shown]
        return sorted(found, key=lambda line: (places.index(line.task_set), self._place(line)))

    @cached_property
    def differences(self) -> list[Difference]:
        """Every other recipe against the baseline, in the order of the lines."""
        others = [line.name for line in self.lines if not line.task_set]
        others.remove(self.comparison.against)
        flat = {name: [x for one in self.paired(name) for x in one] for name in others}
        signs = [statistics.signs(flat[name]) for name in others]
        student = [statistics.student(flat[name]) for name in others]
        rows = zip(
            others, signs, student, statistics.holm(signs), statistics.holm(student), strict=True
        )
        return [
            Difference(name, len(flat[name]), self.by(name), self._improved(name), *ps)
            for name, *ps in rows
        ]

    def difference(self, line: Line) -> Difference | None:
        """What was tested of a line: nothing of the baseline's, or of one task set's alone."""
        tested = (one for one in self.differences if not line.task_set)
        return next((one for one in tested if one.name == line.name), None)

    def by(self, name: str, sets: Sequence[str] = ()) -> Interval:
        """The mean of its differences to the baseline."""
        return statistics.mean(self.paired(name, sets))

    def values(self, name: str, metric: str, sets: Sequence[str] = ()) -> Strata:
        """What the finished runs of a recipe measured, where it is a number, by task set."""
        found = [self._seeds(name, task_set, metric) for task_set in sets or self.comparison.sets]
        return [list(seeds.values()) for seeds in found]

    def paired(self, name: str, sets: Sequence[str] = ()) -> Strata:
        """Differences to the baseline's run of the same seed, on every task set that has some."""
        pairs = []
        for task_set in sets or self.comparison.sets:
            mine = self._seeds(name, task_set, self.metric)
            base = self._seeds(self.comparison.against, task_set, self.metric)
            pairs.append([mine[seed] - base[seed] for seed in mine if seed in base])
        return [one for one in pairs if one]

    def to_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        comparison = self.comparison
        return {
            "budget": show(comparison.budget),
            "metric": self.metric,
            "baseline": comparison.against,
            "updates": {name: show(one.method.plan) for name, one in comparison.held.items()},
            "cells": [_cell(outcome) for outcome in self.outcomes],
            "means": [_line(line) for line in self.lines],
            "differences": [_difference(one) for one in self.differences],
        }

    def _line(self, name: str, called: str, sets: Sequence[str]) -> Line:
        mine = [o for o in self.outcomes if o.cell.name == name and o.cell.task_set in sets]
        means = {m: statistics.mean(self.values(name, m, sets)) for m in METRICS}
        return Line(name, called, len(mine), sum(o.status == FINISHED for o in mine), means)

    def _place(self, line: Line) -> float:
        value = line.means[self.metric].value
        return math.inf if math.isnan(value) else -value

    def _seeds(self, name: str, task_set: str, metric: str) -> dict[int, float]:
        mine = (o for o in self.outcomes if (o.cell.name, o.cell.task_set) == (name, task_set))
        found = {o.cell.seed: o[metric] for o in mine}  # NaN of those that have not ended
        return {seed: x for seed, x in found.items() if math.isfinite(x)}

    def _improved(self, name: str) -> Interval:
        ours, theirs = (self.values(n, self.metric) for n in (name, self.comparison.against))
        both = [pair for pair in zip(ours, theirs, strict=True) if all(pair)]
        return statistics.improvement(*zip(*both, strict=True)) if both else Interval()


def _cell(outcome: Outcome) -> dict[str, Any]:
    cell = outcome.cell
    return {
        "name": cell.name,
        "task_set": cell.task_set,
        "seed": cell.seed,
        "status": outcome.status,
        "why": outcome.why,
        "folder": str(cell.folder),
        **{metric: outcome[metric] for metric in METRICS},
    }


def _line(line: Line) -> dict[str, Any]:
    means = {metric: _interval(one) for metric, one in line.means.items()}
    return {**vars(line), "means": means}


def _difference(one: Difference) -> dict[str, Any]:
    both = {"by": _interval(one.by), "improvement": _interval(one.improvement)}
    return {**vars(one), **both, "verdict": one.verdict}


def _interval(one: Interval) -> list[float]:
    return [one.value, one.low, one.high]
