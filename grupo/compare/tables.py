"""A result as tables: what is in their rows."""

import math

from grupo.compare.experiment import METRICS
from grupo.compare.result import ComparisonResult, ResultRow
from grupo.compare.table_formats import TableRows, csv_text
from grupo.core.statistics import Interval

FRACTION_METRICS = ("sampled", "greedy", "nonzero_std_frac")


def main_table(result: ComparisonResult) -> TableRows:
    """A row for each recipe: its runs, the metric, and how it compares with the baseline."""
    metric, against = result.metric, result.comparison.baseline_name
    beside = [name for name in ("reward", "nonzero_std_frac", "steps", "tokens", "seconds") if name != metric]
    head = [
        "recipe",
        *["tasks"] * _has_several_task_sets(result),
        "runs",
        metric,
        f"against {against}",
    ]
    rows = [[*head, "P(above)", "p", "p of many", "p of many, normal", "", *beside]]
    for line in result.rows:
        where = [line.task_set or "all"] * _has_several_task_sets(result)
        means = [_format_mean(line, name) for name in beside]
        shown = _comparison_cells(result, line)
        rows.append(
            [line.name, *where, _format_runs(line), _format_mean(line, metric), *shown, *means]
        )
    return rows


def brief_table(result: ComparisonResult) -> TableRows:
    """What of it a terminal has room for: means, differences, and whether they are told apart."""
    rows = main_table(result)
    places = [*range(4 + _has_several_task_sets(result)), rows[0].index("")]
    return [[row[place] for place in places] for row in rows]


def run_table(result: ComparisonResult) -> TableRows:
    """A row for each run, however it stands."""
    head = [
        "recipe",
        *["tasks"] * _has_several_task_sets(result),
        "seed",
        "status",
        *METRICS,
        "why",
    ]
    rows = [head]
    for outcome in result.run_statuses:
        cell = outcome.run_spec
        numbers = [
            format_metric(name, outcome[name]) if outcome.metrics else "" for name in METRICS
        ]
        where = [cell.task_set] * _has_several_task_sets(result)
        rows.append([cell.name, *where, str(cell.seed), outcome.status, *numbers, outcome.reason])
    return rows


def exact_run_rows(result: ComparisonResult) -> list[list[object]]:
    """As `cells`, in full precision and with the runs' folders."""
    names = ("name", "task_set", "seed", "status", *METRICS, "reason", "folder")
    return [[*names], *([cell[name] for name in names] for cell in result.to_data()["runs"])]


def results_csv(result: ComparisonResult) -> str:
    """Means and differences as CSV, in full precision; every interval in three columns."""
    compared = ["pairs", *_interval_columns("difference"), *_interval_columns("probability_of_improvement")]
    compared += ["p_sign_test", "p_sign_test_holm", "p_t_test", "p_t_test_holm", "verdict"]
    head = [
        "recipe",
        "tasks",
        "runs",
        "finished",
        *(c for m in METRICS for c in _interval_columns(m)),
    ]
    rows: list[list[object]] = [[*head, *compared]]
    for line in result.rows:
        found = [x for m in METRICS for x in vars(line.means[m]).values()]
        beside = _exact_comparison(result, line)
        beside += [""] * (len(compared) - len(beside))
        rows.append([line.name, line.task_set, line.runs, line.finished, *found, *beside])
    return csv_text(rows)


def format_metric(metric: str, value: float) -> str:
    """A value as people read it; "NaN" is what it is.

    >>> format_metric("sampled", 0.4321), format_metric("tokens", 12345.6), format_metric("reward", float("nan"))
    ('43.2 %', '12,346', 'NaN')
    """
    if math.isnan(value):
        return "NaN"
    if metric in FRACTION_METRICS:
        return f"{100 * value:.1f} %"
    digits = {"reward": 3, "seconds": int(abs(value) < 100)}.get(metric, 0)
    return f"{value:,.{digits}f}"


def format_interval(metric: str, interval: Interval, sign: str = "") -> str:
    """A mean and its interval, which one run has not; a mean of nothing is a dash."""
    if math.isnan(interval.value):
        return "-"
    value, low, high = (_format_without_unit(metric, x, sign) for x in vars(interval).values())
    inside = "" if math.isnan(interval.low) else f" [{low}, {high}]"
    unit = " points" if sign else " %"
    return value + inside + unit * (metric in FRACTION_METRICS)


def format_probability(p: float) -> str:
    """A p as people read it.

    >>> format_probability(0.25), format_probability(0.00004), format_probability(float("nan"))
    ('0.250', '<0.001', '-')
    """
    return "-" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _format_without_unit(metric: str, value: float, sign: str) -> str:
    """A value without its unit; a sign before those that have none, where wanted."""
    return sign * (value >= 0) + format_metric(metric, value).removesuffix(" %")


def _comparison_cells(result: ComparisonResult, line: ResultRow) -> list[str]:
    """How a recipe compares with the baseline; on one of several task sets nothing is tested."""
    if line.name == result.comparison.baseline_name:
        return ["baseline" * (not line.task_set), *[""] * 5]
    by = format_interval(result.metric, result.mean_difference(line.name, line.task_sets), "+")
    one = result.difference(line)
    if not one:
        return [by, *[""] * 5]
    ps = (one.sign_test_p, one.sign_test_p_holm, one.t_test_p_holm)
    return [
        by,
        _format_probability_interval(one.probability_of_improvement),
        *map(format_probability, ps),
        one.verdict,
    ]


def _format_probability_interval(one: Interval) -> str:
    if math.isnan(one.value):
        return "-"
    inside = "" if math.isnan(one.low) else f" [{one.low:.2f}, {one.high:.2f}]"
    return f"{one.value:.2f}{inside}"


def _exact_comparison(result: ComparisonResult, line: ResultRow) -> list[object]:
    if line.name == result.comparison.baseline_name:
        return []
    pairs = sum(map(len, result.paired_differences(line.name, line.task_sets)))
    by = [pairs, *vars(result.mean_difference(line.name, line.task_sets)).values()]
    one = result.difference(line)
    if not one:
        return by
    ps = (one.sign_test_p, one.sign_test_p_holm, one.t_test_p, one.t_test_p_holm)
    return [*by, *vars(one.probability_of_improvement).values(), *ps, one.verdict]


def _interval_columns(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _format_mean(line: ResultRow, metric: str) -> str:
    return format_interval(metric, line.means[metric])


def _format_runs(line: ResultRow) -> str:
    return str(line.runs) if line.finished == line.runs else f"{line.finished} of {line.runs}"


def _has_several_task_sets(result: ComparisonResult) -> bool:
    return len(result.comparison.task_set_names) > 1
