"""Differences at equal generated tokens and at equal updates, from the curves of the same runs.

In each pair both runs are compared where the one with the smaller total ended.
"""

import math
from collections.abc import Callable

import numpy as np

from grupo.compare.differences import (
    INCONCLUSIVE,
    UNFINISHED_TEST,
    Difference,
    sequential_differences,
    tested_differences,
)
from grupo.compare.metric_text import format_interval
from grupo.compare.pairs import differences_by_seed
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import Curve, RunStatus, tail_mean
from grupo.compare.table_formats import TableRows

EQUAL_UNITS = {"tokens": "at equal generated tokens", "updates": "at equal updates"}
MIN_EVALUATIONS = 3  # of a curve between whose points is interpolated
ValueAt = Callable[[RunStatus, str, float], float]


def equal_usage_differences(result: ComparisonResult, unit: str) -> list[Difference]:
    """Every recipe against the baseline at equal usage; without pairs where curves lack points.

    Args:
        result: the result of the comparison.
        unit: "tokens" (generated) or "updates" (of the optimizer).
    """
    comparison = result.comparison
    value_at = VALUES_AT.get(result.metric, _no_value)

    def difference(own: RunStatus, baseline: RunStatus) -> float:
        limit = min(own.usage(unit), baseline.usage(unit))
        return value_at(own, unit, limit) - value_at(baseline, unit, limit)

    paired = {
        primary.name: differences_by_seed(comparison, result.run_statuses, primary.name, difference)
        for primary in result.differences
    }
    if design := comparison.arm_design:
        return sequential_differences(paired, design)
    return tested_differences({name: [x] * bool(x) for name, x in paired.items()})


def equal_usage_table(result: ComparisonResult) -> TableRows:
    """A row for each recipe, with its difference and verdict at equal usage in each unit."""
    header = ["recipe", *(cell for label in EQUAL_UNITS.values() for cell in (label, "verdict"))]
    columns = [equal_usage_differences(result, unit) for unit in EQUAL_UNITS]
    rows = [
        [row[0].name, *(cell for difference in row for cell in _cells(result, difference))]
        for row in zip(*columns, strict=True)
    ]
    return [header, *rows] if any(one.pairs for column in columns for one in column) else []


def _cells(result: ComparisonResult, difference: Difference) -> tuple[str, str]:
    mean = format_interval(result.metric, difference.mean_difference, "+")
    is_ended = all(primary.verdict != UNFINISHED_TEST for primary in result.differences)
    is_open = difference.verdict == UNFINISHED_TEST and is_ended  # stopped by the other test
    return mean, INCONCLUSIVE if is_open else difference.verdict if difference.pairs else "-"


def _points(run: RunStatus, curve: Curve, unit: str) -> np.ndarray:
    """The usage at each point of a curve."""
    if unit == "tokens":
        return np.asarray(curve.tokens)
    return np.asarray(curve.steps) * run.run_spec.recipe.updates_per_step


def _held_out_at(run: RunStatus, unit: str, limit: float) -> float:
    """The held-out score, interpolated between the evaluations; NaN if there are too few."""
    curve = run.curves.get("held_out", Curve())
    if limit >= run.usage(unit):
        return run["sampled"]
    if len(curve.values) < MIN_EVALUATIONS or not math.isfinite(limit):
        return math.nan
    return float(np.interp(limit, _points(run, curve, unit), curve.values))


def _reward_at(run: RunStatus, unit: str, limit: float) -> float:
    """The reward of the run if it had ended at the limit."""
    curve = run.curves.get("reward", Curve())
    ended = [
        x for x, used in zip(curve.values, _points(run, curve, unit), strict=True) if used <= limit
    ]
    return tail_mean(ended) if ended else math.nan


def _no_value(run: RunStatus, unit: str, limit: float) -> float:
    return math.nan


VALUES_AT: dict[str, ValueAt] = {"sampled": _held_out_at, "reward": _reward_at}
