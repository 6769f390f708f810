"""Statistics of a comparison: means per recipe, and tested differences to the baseline."""

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

IF_NORMAL = ", if differences are normal"
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class ResultRow:
    """A recipe on one task set, or on all of them.

    Args:
        name: the recipe.
        task_set: the task set; "": all of them.
        runs: the number of runs.
        finished: the number of finished runs.
        means: the mean of every metric with its interval.
    """

    name: str
    task_set: str
    runs: int
    finished: int
    means: Mapping[str, Interval]

    @property
    def task_sets(self) -> tuple[str, ...]:
        """The task set as a tuple; empty: all of them."""
        return (self.task_set,) if self.task_set else ()


@dataclass(frozen=True)
class Difference:
    """The difference of a recipe to the baseline, over pairs of runs with equal seed and tasks.

    Args:
        name: the recipe.
        pairs: the number of pairs.
        mean_difference: in the metric of the comparison.
        probability_of_improvement: that a run of the recipe exceeds one of the baseline.
        sign_test_p: p of the exact sign-flip test.
        t_test_p: p of Student's paired t-test, which assumes normal differences.
        sign_test_p_holm, t_test_p_holm: the same, Holm-corrected for all comparisons.
    """

    name: str
    pairs: int
    mean_difference: Interval
    probability_of_improvement: Interval
    sign_test_p: float
    t_test_p: float
    sign_test_p_holm: float
    t_test_p_holm: float

    @property
    def verdict(self) -> str:
        """Whether the corrected difference is significant: "more", "less" or `INCONCLUSIVE`."""
        direction = "more" if self.mean_difference.value > 0 else "less"
        if self.sign_test_p_holm <= 1 - CONFIDENCE_LEVEL:
            return direction
        is_normal_significant = self.t_test_p_holm <= 1 - CONFIDENCE_LEVEL
        return direction + IF_NORMAL if is_normal_significant else INCONCLUSIVE


@dataclass(frozen=True)
class ComparisonResult:
    """The measurements of a comparison and their statistics."""

    comparison: Comparison
    run_statuses: Sequence[RunStatus]

    @property
    def metric(self) -> str:
        """The metric in which differences are taken."""
        return self.comparison.metric

    @cached_property
    def rows(self) -> list[ResultRow]:
        """A row per recipe, the highest mean first; over all task sets, then per set."""
        names = self.comparison.task_set_names
        subsets = {"": names, **({name: (name,) for name in names} if len(names) > 1 else {})}
        rows = [
            self._row(recipe, label, task_sets)
            for label, task_sets in subsets.items()
            for recipe in self.comparison.recipes
        ]
        order = list(subsets)
        return sorted(rows, key=lambda row: (order.index(row.task_set), self._sort_key(row)))

    @cached_property
    def differences(self) -> list[Difference]:
        """Every other recipe against the baseline, in the order of the rows."""
        others = [row.name for row in self.rows if not row.task_set]
        others.remove(self.comparison.baseline_name)
        pairs = {n: [x for values in self.paired_differences(n) for x in values] for n in others}
        sign_ps = [statistics.sign_flip_p_value(pairs[name]) for name in others]
        t_ps = [statistics.paired_t_p_value(pairs[name]) for name in others]
        sign_ps_holm = statistics.holm_correction(sign_ps)
        t_ps_holm = statistics.holm_correction(t_ps)
        return [
            Difference(
                name=name,
                pairs=len(pairs[name]),
                mean_difference=self.mean_difference(name),
                probability_of_improvement=self._probability_of_improvement(name),
                sign_test_p=sign_ps[i],
                t_test_p=t_ps[i],
                sign_test_p_holm=sign_ps_holm[i],
                t_test_p_holm=t_ps_holm[i],
            )
            for i, name in enumerate(others)
        ]

    def difference(self, row: ResultRow) -> Difference | None:
        """The tested difference of a row; None for the baseline and for a single task set."""
        tested = (difference for difference in self.differences if not row.task_set)
        return next((difference for difference in tested if difference.name == row.name), None)

    def mean_difference(self, name: str, task_sets: Sequence[str] = ()) -> Interval:
        """The mean paired difference of a recipe to the baseline."""
        return statistics.stratified_mean(self.paired_differences(name, task_sets))

    def values(self, name: str, metric: str, task_sets: Sequence[str] = ()) -> Strata:
        """The finite values of a metric over the finished runs of a recipe, by task set."""
        names = task_sets or self.comparison.task_set_names
        by_seed = [self._values_by_seed(name, task_set, metric) for task_set in names]
        return [list(values.values()) for values in by_seed]

    def paired_differences(self, name: str, task_sets: Sequence[str] = ()) -> Strata:
        """Differences to the baseline's run of the same seed, by task set, without empty sets."""
        strata = []
        for task_set in task_sets or self.comparison.task_set_names:
            values = self._values_by_seed(name, task_set, self.metric)
            base = self._values_by_seed(self.comparison.baseline_name, task_set, self.metric)
            strata.append([values[seed] - base[seed] for seed in values if seed in base])
        return [differences for differences in strata if differences]

    def to_data(self) -> dict[str, Any]:
        """The result as plain data for `results.json`."""
        comparison = self.comparison
        recipes = comparison.run_recipes
        return {
            "budget": to_code(comparison.budget),
            "metric": self.metric,
            "baseline": comparison.baseline_name,
            "updates": {name: to_code(recipes[name].method.updates) for name in recipes},
            "runs": list(map(_run_data, self.run_statuses)),
            "means": list(map(_row_data, self.rows)),
            "differences": list(map(_difference_data, self.differences)),
        }

    def _row(self, name: str, task_set: str, task_sets: Sequence[str]) -> ResultRow:
        statuses = [
            run.status
            for run in self.run_statuses
            if run.run_spec.name == name and run.run_spec.task_set in task_sets
        ]
        means = {m: statistics.stratified_mean(self.values(name, m, task_sets)) for m in METRICS}
        return ResultRow(name, task_set, len(statuses), statuses.count(FINISHED), means)

    def _sort_key(self, row: ResultRow) -> float:
        value = row.means[self.metric].value
        return math.inf if math.isnan(value) else -value

    def _values_by_seed(self, name: str, task_set: str, metric: str) -> dict[int, float]:
        values = {
            run.run_spec.seed: run[metric]  # NaN if the run has not finished
            for run in self.run_statuses
            if (run.run_spec.name, run.run_spec.task_set) == (name, task_set)
        }
        return {seed: x for seed, x in values.items() if math.isfinite(x)}

    def _probability_of_improvement(self, name: str) -> Interval:
        values = self.values(name, self.metric)
        baseline = self.values(self.comparison.baseline_name, self.metric)
        pairs = [pair for pair in zip(values, baseline, strict=True) if all(pair)]
        if not pairs:
            return Interval()
        return statistics.probability_of_improvement(*zip(*pairs, strict=True))


def _run_data(run_status: RunStatus) -> dict[str, Any]:
    run_spec = run_status.run_spec
    return {
        "name": run_spec.name,
        "task_set": run_spec.task_set,
        "seed": run_spec.seed,
        "status": run_status.status,
        "reason": run_status.reason,
        "folder": str(run_spec.folder),
        **{metric: run_status[metric] for metric in METRICS},
    }


def _row_data(row: ResultRow) -> dict[str, Any]:
    means = {metric: _interval_data(interval) for metric, interval in row.means.items()}
    return {**vars(row), "means": means}


def _difference_data(difference: Difference) -> dict[str, Any]:
    intervals = {
        "mean_difference": _interval_data(difference.mean_difference),
        "probability_of_improvement": _interval_data(difference.probability_of_improvement),
    }
    return {**vars(difference), **intervals, "verdict": difference.verdict}


def _interval_data(interval: Interval) -> list[float]:
    return [interval.value, interval.low, interval.high]
