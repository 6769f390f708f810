"""What a comparison came to: per recipe the means, per difference how sure it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grupo.compare.experiment import METRICS, Comparison
from grupo.compare.run_status import FINISHED, RunStatus
from grupo.core import statistics
from grupo.core.component import to_code
from grupo.core.statistics import CONFIDENCE_LEVEL, Interval, Strata

IF_NORMAL, INCONCLUSIVE = ", if differences are normal", "inconclusive"


@dataclass(frozen=True)
class ResultRow:
    """A recipe on one task set, or on all of them: its runs, and the mean of every metric."""

    name: str
    task_set: str
    runs: int
    finished: int
    means: Mapping[str, Interval]

    @property
    def task_sets(self) -> tuple[str, ...]:
        """The task set it is of; none says all of them."""
        return (self.task_set,) if self.task_set else ()


@dataclass(frozen=True)
class Difference:
    """A recipe against the baseline, run by run of the same seed on the same tasks."""

    name: str
    pairs: int
    mean_difference: Interval
    probability_of_improvement: Interval
    sign_test_p: float  # p, by the signs of the pairs
    t_test_p: float  # p, if differences are normal
    sign_test_p_holm: float  # the same, corrected for all comparisons
    t_test_p_holm: float

    @property
    def verdict(self) -> str:
        """Whether it survives the correction, and under what."""
        way = "more" if self.mean_difference.value > 0 else "less"
        if self.sign_test_p_holm <= 1 - CONFIDENCE_LEVEL:
            return way
        return way + IF_NORMAL if self.t_test_p_holm <= 1 - CONFIDENCE_LEVEL else INCONCLUSIVE


@dataclass(frozen=True)
class ComparisonResult:
    """All that was measured, and what follows from it."""

    comparison: Comparison
    run_statuses: Sequence[RunStatus]

    @property
    def metric(self) -> str:
        """What differences are taken in."""
        return self.comparison.metric

    @cached_property
    def rows(self) -> list[ResultRow]:
        """Every recipe, the highest first; with several task sets all of them, then each."""
        sets = self.comparison.task_set_names
        shown = [("", sets), *((name, (name,)) for name in sets if len(sets) > 1)]
        found = [
            self._row(name, called, inside)
            for called, inside in shown
            for name in self.comparison.recipes
        ]
        places = [called for called, _ in shown]
        return sorted(found, key=lambda line: (places.index(line.task_set), self._sort_key(line)))

    @cached_property
    def differences(self) -> list[Difference]:
        """Every other recipe against the baseline, in the order of the lines."""
        others = [line.name for line in self.rows if not line.task_set]
        others.remove(self.comparison.baseline_name)
        flat = {name: [x for one in self.paired_differences(name) for x in one] for name in others}
        signs = [statistics.sign_flip_p_value(flat[name]) for name in others]
        student = [statistics.paired_t_p_value(flat[name]) for name in others]
        rows = zip(
            others,
            signs,
            student,
            statistics.holm_correction(signs),
            statistics.holm_correction(student),
            strict=True,
        )
        return [
            Difference(
                name,
                len(flat[name]),
                self.mean_difference(name),
                self._probability_of_improvement(name),
                *ps,
            )
            for name, *ps in rows
        ]

    def difference(self, row: ResultRow) -> Difference | None:
        """What was tested of a line: nothing of the baseline's, or of one task set's alone."""
        tested = (one for one in self.differences if not row.task_set)
        return next((one for one in tested if one.name == row.name), None)

    def mean_difference(self, name: str, task_sets: Sequence[str] = ()) -> Interval:
        """The mean of its differences to the baseline."""
        return statistics.stratified_mean(self.paired_differences(name, task_sets))

    def values(self, name: str, metric: str, task_sets: Sequence[str] = ()) -> Strata:
        """What the finished runs of a recipe measured, where it is a number, by task set."""
        found = [
            self._values_by_seed(name, task_set, metric)
            for task_set in task_sets or self.comparison.task_set_names
        ]
        return [list(seeds.values()) for seeds in found]

    def paired_differences(self, name: str, task_sets: Sequence[str] = ()) -> Strata:
        """Differences to the baseline's run of the same seed, on every task set that has some."""
        pairs = []
        for task_set in task_sets or self.comparison.task_set_names:
            mine = self._values_by_seed(name, task_set, self.metric)
            base = self._values_by_seed(self.comparison.baseline_name, task_set, self.metric)
            pairs.append([mine[seed] - base[seed] for seed in mine if seed in base])
        return [one for one in pairs if one]

    def to_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        comparison = self.comparison
        return {
            "budget": to_code(comparison.budget),
            "metric": self.metric,
            "baseline": comparison.baseline_name,
            "updates": {
                name: to_code(one.method.updates) for name, one in comparison.run_recipes.items()
            },
            "runs": [_run_data(outcome) for outcome in self.run_statuses],
            "means": [_row_data(line) for line in self.rows],
            "differences": [_difference_data(one) for one in self.differences],
        }

    def _row(self, name: str, task_set: str, task_sets: Sequence[str]) -> ResultRow:
        mine = [
            o
            for o in self.run_statuses
            if o.run_spec.name == name and o.run_spec.task_set in task_sets
        ]
        means = {m: statistics.stratified_mean(self.values(name, m, task_sets)) for m in METRICS}
        return ResultRow(name, task_set, len(mine), sum(o.status == FINISHED for o in mine), means)

    def _sort_key(self, row: ResultRow) -> float:
        value = row.means[self.metric].value
        return math.inf if math.isnan(value) else -value

    def _values_by_seed(self, name: str, task_set: str, metric: str) -> dict[int, float]:
        mine = (
            o
            for o in self.run_statuses
            if (o.run_spec.name, o.run_spec.task_set) == (name, task_set)
        )
        found = {o.run_spec.seed: o[metric] for o in mine}  # NaN of those that have not ended
        return {seed: x for seed, x in found.items() if math.isfinite(x)}

    def _probability_of_improvement(self, name: str) -> Interval:
        ours, theirs = (self.values(n, self.metric) for n in (name, self.comparison.baseline_name))
        both = [pair for pair in zip(ours, theirs, strict=True) if all(pair)]
        return (
            statistics.probability_of_improvement(*zip(*both, strict=True)) if both else Interval()
        )


def _run_data(run_status: RunStatus) -> dict[str, Any]:
    cell = run_status.run_spec
    return {
        "name": cell.name,
        "task_set": cell.task_set,
        "seed": cell.seed,
        "status": run_status.status,
        "reason": run_status.reason,
        "folder": str(cell.folder),
        **{metric: run_status[metric] for metric in METRICS},
    }


def _row_data(row: ResultRow) -> dict[str, Any]:
    means = {metric: _interval_data(one) for metric, one in row.means.items()}
    return {**vars(row), "means": means}


def _difference_data(difference: Difference) -> dict[str, Any]:
    both = {
        "mean_difference": _interval_data(difference.mean_difference),
        "probability_of_improvement": _interval_data(difference.probability_of_improvement),
    }
    return {**vars(difference), **both, "verdict": difference.verdict}


def _interval_data(interval: Interval) -> list[float]:
    return [interval.value, interval.low, interval.high]
