"""Statistics of a comparison: means per recipe, and tested differences to the baseline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grupo.compare.differences import Difference, sequential_differences, tested_differences
from grupo.compare.experiment import METRICS, Comparison
from grupo.compare.metric_text import format_interval
from grupo.compare.pairs import differences_by_seed
from grupo.compare.run_status import FINISHED, RunStatus
from grupo.compare.sequential_design import Decision, SequentialDesign
from grupo.core.component import to_code
from grupo.util import html, statistics
from grupo.util.statistics import Interval, Strata

INTERVAL_FIELDS = ("mean_difference", "effect_size")


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
class ComparisonResult:
    """The measurements of a comparison and their statistics."""

    comparison: Comparison
    run_statuses: Sequence[RunStatus]

    def _repr_html_(self) -> str:
        """Means and differences of each recipe in a notebook."""
        baseline = self.comparison.baseline_name
        header = ("recipe", "finished runs", self.metric, f"against {baseline}", "verdict")
        title = html.escape(f"{self.metric}: {METRICS[self.metric]}")
        rows = ([*map(html.escape, self._cells(row))] for row in self.rows)
        return html.fragment(html.table([*map(html.escape, header)], rows, title))

    def _cells(self, row: ResultRow) -> list[str]:
        difference = self.difference(row)
        name = f"{row.name}, {row.task_set}" if row.task_set else row.name
        return [
            name,
            f"{row.finished} of {row.runs}",
            format_interval(self.metric, row.means.get(self.metric, Interval())),
            format_interval(self.metric, difference.mean_difference, "+") if difference else "",
            difference.verdict if difference else "",
        ]

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
            for recipe in (*self.comparison.recipes, *self.comparison.control_names)
        ]
        order = list(subsets)
        return sorted(rows, key=lambda row: (order.index(row.task_set), self._sort_key(row)))

    @cached_property
    def differences(self) -> list[Difference]:
        """Every other recipe against the baseline, in the order of the rows."""
        arms = self.comparison.arm_names
        names = [row.name for row in self.rows if not row.task_set and row.name in arms]
        return self._test(names, self.comparison.arm_design)

    @cached_property
    def control_differences(self) -> list[Difference]:
        """Every control against the baseline; their tests do not share alpha."""
        design = self.comparison.design
        return [x for name in self.comparison.control_names for x in self._test([name], design)]

    def _test(self, names: Sequence[str], design: SequentialDesign | None) -> list[Difference]:
        if design:
            statuses = self.run_statuses
            paired = {n: differences_by_seed(self.comparison, statuses, n) for n in names}
            return sequential_differences(paired, design)
        return tested_differences({name: self.paired_differences(name) for name in names})

    def difference(self, row: ResultRow) -> Difference | None:
        """The tested difference of a row; None for the baseline and for a single task set."""
        tested = [] if row.task_set else [*self.differences, *self.control_differences]
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
            "design": comparison.arm_design and to_code(comparison.arm_design),
            "updates": {name: to_code(recipes[name].method.updates) for name in recipes},
            "runs": list(map(_run_data, self.run_statuses)),
            "means": list(map(_row_data, self.rows)),
            "controls": [self.difference_data(control) for control in self.control_differences],
            "differences": [self.difference_data(difference) for difference in self.differences],
        }

    def difference_data(self, difference: Difference) -> dict[str, Any]:
        """A difference as plain data."""
        improvement = self.probability_of_improvement(difference.name)
        looks = [{**vars(look), **_intervals(look)} for look in difference.looks]
        return {
            **{name: value for name, value in vars(difference).items() if name != "tests"},
            **difference.tests,
            **_intervals(difference),
            "probability_of_improvement": _interval_data(improvement),
            "looks": looks,
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

    def probability_of_improvement(self, name: str) -> Interval:
        """The probability that a run of a recipe exceeds one of the baseline."""
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


def _interval_data(interval: Interval) -> list[float]:
    return [interval.value, interval.low, interval.high]


def _intervals(source: Difference | Decision) -> dict[str, list[float]]:
    return {name: _interval_data(getattr(source, name)) for name in INTERVAL_FIELDS}
