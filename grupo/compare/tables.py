"""The rows of the tables of a result."""

import math

from grupo.compare.experiment import METRICS
from grupo.compare.result import ComparisonResult, ResultRow
from grupo.compare.table_formats import TableRows, csv_text
from grupo.core.statistics import Interval

FRACTION_METRICS = ("sampled", "greedy", "nonzero_std_frac")
OTHER_METRICS = ("reward", "nonzero_std_frac", "steps", "tokens", "seconds")


def main_table(result: ComparisonResult) -> TableRows:
    """A row for each recipe: its runs, the metric, and how it compares with the baseline."""
    metric = result.metric
    baseline = result.comparison.baseline_name
    others = [name for name in OTHER_METRICS if name != metric]
    header = [
        "recipe",
        *["tasks"] * _has_several_task_sets(result),
        "runs",
        metric,
        f"against {baseline}",
    ]
    tests = ["P(above)", "p", "p (Holm)", "t-test p (Holm)", "verdict"]
    rows = [[*header, *tests, *others]]
    for row in result.rows:
        task_set = [row.task_set or "all"] * _has_several_task_sets(result)
        comparison = _comparison_cells(result, row)
        means = [_format_mean(row, name) for name in others]
        own = [row.name, *task_set, _format_runs(row), _format_mean(row, metric)]
        rows.append([*own, *comparison, *means])
    return rows


def brief_table(result: ComparisonResult) -> TableRows:
    """The columns of `main_table` that fit a terminal: means, differences and verdicts."""
    rows = main_table(result)
    columns = [*range(4 + _has_several_task_sets(result)), rows[0].index("verdict")]
    return [[row[column] for column in columns] for row in rows]


def run_table(result: ComparisonResult) -> TableRows:
    """A row for each run, whatever its status."""
    header = [
        "recipe",
        *["tasks"] * _has_several_task_sets(result),
        "seed",
        "status",
        *METRICS,
        "reason",
    ]
    rows = [header]
    for run in result.run_statuses:
        spec = run.run_spec
        values = [format_metric(name, run[name]) if run.metrics else "" for name in METRICS]
        task_set = [spec.task_set] * _has_several_task_sets(result)
        rows.append([spec.name, *task_set, str(spec.seed), run.status, *values, run.reason])
    return rows


def exact_run_rows(result: ComparisonResult) -> list[list[object]]:
    """As `run_table`, in full precision and with the folders of the runs."""
    names = ("name", "task_set", "seed", "status", *METRICS, "reason", "folder")
    return [[*names], *([run[name] for name in names] for run in result.to_data()["runs"])]


def results_csv(result: ComparisonResult) -> str:
    """Means and differences as CSV in full precision; an interval has three columns."""
    tests = ["pairs", *_interval_columns("difference")]
    tests += _interval_columns("probability_of_improvement")
    tests += ["p_sign_test", "p_sign_test_holm", "p_t_test", "p_t_test_holm", "verdict"]
    header = [
        "recipe",
        "tasks",
        "runs",
        "finished",
        *(c for m in METRICS for c in _interval_columns(m)),
    ]
    rows: list[list[object]] = [[*header, *tests]]
    for row in result.rows:
        means = [x for metric in METRICS for x in vars(row.means[metric]).values()]
        comparison = _exact_comparison(result, row)
        padding = [""] * (len(tests) - len(comparison))
        own = [row.name, row.task_set, row.runs, row.finished]
        rows.append([*own, *means, *comparison, *padding])
    return csv_text(rows)


def format_metric(metric: str, value: float) -> str:
    """The value of a metric as text.

    >>> format_metric("sampled", 0.4321), format_metric("tokens", 12345.6)
    ('43.2 %', '12,346')
    >>> format_metric("reward", float("nan"))
    'NaN'
    """
    if math.isnan(value):
        return "NaN"
    if metric in FRACTION_METRICS:
        return f"{100 * value:.1f} %"
    digits = {"reward": 3, "seconds": int(abs(value) < 100)}.get(metric, 0)
    return f"{value:,.{digits}f}"


def format_interval(metric: str, interval: Interval, sign: str = "") -> str:
    """A mean with its interval; "-" for a mean over nothing, no interval for a single run.

    Args:
        metric: a key of `METRICS`.
        interval: the mean and its interval.
        sign: "+" to show the sign of positive values, for differences.
    """
    if math.isnan(interval.value):
        return "-"
    value, low, high = (_format_without_unit(metric, x, sign) for x in vars(interval).values())
    bounds = "" if math.isnan(interval.low) else f" [{low}, {high}]"
    unit = " points" if sign else " %"
    return value + bounds + unit * (metric in FRACTION_METRICS)


def format_probability(p: float) -> str:
    """A p value as text.

    >>> format_probability(0.25), format_probability(0.00004), format_probability(float("nan"))
    ('0.250', '<0.001', '-')
    """
    return "-" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _format_without_unit(metric: str, value: float, sign: str) -> str:
    """A value without its unit; `sign` is put before values without a minus."""
    return sign * (value >= 0) + format_metric(metric, value).removesuffix(" %")


def _comparison_cells(result: ComparisonResult, row: ResultRow) -> list[str]:
    """The comparison with the baseline; a single one of several task sets is not tested."""
    if row.name == result.comparison.baseline_name:
        return ["baseline" * (not row.task_set), *[""] * 5]
    mean = format_interval(result.metric, result.mean_difference(row.name, row.task_sets), "+")
    tested = result.difference(row)
    if not tested:
        return [mean, *[""] * 5]
    ps = (tested.sign_test_p, tested.sign_test_p_holm, tested.t_test_p_holm)
    improvement = _format_probability_interval(tested.probability_of_improvement)
    return [mean, improvement, *map(format_probability, ps), tested.verdict]


def _format_probability_interval(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "-"
    has_bounds = not math.isnan(interval.low)
    bounds = f" [{interval.low:.2f}, {interval.high:.2f}]" if has_bounds else ""
    return f"{interval.value:.2f}{bounds}"


def _exact_comparison(result: ComparisonResult, row: ResultRow) -> list[object]:
    if row.name == result.comparison.baseline_name:
        return []
    pairs = sum(map(len, result.paired_differences(row.name, row.task_sets)))
    mean = [pairs, *vars(result.mean_difference(row.name, row.task_sets)).values()]
    tested = result.difference(row)
    if not tested:
        return mean
    improvement = vars(tested.probability_of_improvement).values()
    ps = (tested.sign_test_p, tested.sign_test_p_holm, tested.t_test_p, tested.t_test_p_holm)
    return [*mean, *improvement, *ps, tested.verdict]


def _interval_columns(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _format_mean(row: ResultRow, metric: str) -> str:
    return format_interval(metric, row.means[metric])


def _format_runs(row: ResultRow) -> str:
    return str(row.runs) if row.finished == row.runs else f"{row.finished} of {row.runs}"


def _has_several_task_sets(result: ComparisonResult) -> bool:
    return len(result.comparison.task_set_names) > 1
