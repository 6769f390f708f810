"""The rows of the tables of a result."""

from grupo.compare.experiment import METRICS
from grupo.compare.metric_text import (
    format_interval,
    format_metric,
    format_plain_interval,
    format_probability,
)
from grupo.compare.result import ComparisonResult, ResultRow
from grupo.compare.table_formats import TableRows, csv_text

TEST_COLUMNS = {
    "p": "sign_test_p",
    "p (Holm)": "sign_test_p_holm",
    "t-test p (Holm)": "t_test_p_holm",
}
EXACT_TESTS = ("sign_test_p", "sign_test_p_holm", "t_test_p", "t_test_p_holm")
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
    rows = [[*header, *_test_header(result), *others]]
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
    tests = [rows[0].index(name) for name in ("effect size", "verdict")]
    columns = [*range(4 + _has_several_task_sets(result)), *tests]
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
    tests += _interval_columns("effect_size")
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


def _test_header(result: ComparisonResult) -> list[str]:
    """The columns of the tests: p values, or the number of pairs of a sequential test."""
    tests = ["pairs"] if result.comparison.design else TEST_COLUMNS
    return ["P(above)", "effect size", *tests, "verdict"]


def _comparison_cells(result: ComparisonResult, row: ResultRow) -> list[str]:
    """The comparison with the baseline; a single one of several task sets is not tested."""
    empty = [""] * len(_test_header(result))
    if row.name == result.comparison.baseline_name:
        return ["baseline" * (not row.task_set), *empty]
    tested = result.difference(row)
    if not tested:
        mean = result.mean_difference(row.name, row.task_sets)
        return [format_interval(result.metric, mean, "+"), *empty]
    improvement = format_plain_interval(result.probability_of_improvement(row.name))
    ps = [format_probability(tested.tests[name]) for name in TEST_COLUMNS.values() if tested.tests]
    return [
        format_interval(result.metric, tested.mean_difference, "+"),
        improvement,
        format_plain_interval(tested.effect_size),
        *(ps or [str(tested.pairs)]),
        tested.verdict,
    ]


def _exact_comparison(result: ComparisonResult, row: ResultRow) -> list[object]:
    if row.name == result.comparison.baseline_name:
        return []
    tested = result.difference(row)
    if not tested:
        pairs = sum(map(len, result.paired_differences(row.name, row.task_sets)))
        return [pairs, *vars(result.mean_difference(row.name, row.task_sets)).values()]
    intervals = (
        tested.mean_difference,
        result.probability_of_improvement(row.name),
        tested.effect_size,
    )
    bounds = [x for interval in intervals for x in vars(interval).values()]
    ps = [tested.tests.get(name, "") for name in EXACT_TESTS]
    return [tested.pairs, *bounds, *ps, tested.verdict]


def _interval_columns(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _format_mean(row: ResultRow, metric: str) -> str:
    return format_interval(metric, row.means[metric])


def _format_runs(row: ResultRow) -> str:
    return str(row.runs) if row.finished == row.runs else f"{row.finished} of {row.runs}"


def _has_several_task_sets(result: ComparisonResult) -> bool:
    return len(result.comparison.task_set_names) > 1
