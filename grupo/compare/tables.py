"""A result as tables: what is in their rows."""

import math

from grupo.compare.experiment import METRICS
from grupo.compare.result import Line, Result
from grupo.compare.table_formats import Rows, separated
from grupo.core.statistics import Interval

SHARES = ("sampled", "greedy", "signal")


def main(result: Result) -> Rows:
    """A row for each recipe: its runs, the metric, and how it compares with the baseline."""
    metric, against = result.metric, result.comparison.against
    beside = [name for name in ("reward", "signal", "steps", "tokens", "seconds") if name != metric]
    head = ["recipe", *["tasks"] * _many(result), "runs", metric, f"against {against}"]
    rows = [[*head, "P(above)", "p", "p of many", "p of many, normal", "", *beside]]
    for line in result.lines:
        where = [line.task_set or "all"] * _many(result)
        means = [_mean(line, name) for name in beside]
        shown = _against(result, line)
        rows.append([line.name, *where, _runs(line), _mean(line, metric), *shown, *means])
    return rows


def brief(result: Result) -> Rows:
    """What of it a terminal has room for: means, differences, and whether they are told apart."""
    rows = main(result)
    places = [*range(4 + _many(result)), rows[0].index("")]
    return [[row[place] for place in places] for row in rows]


def cells(result: Result) -> Rows:
    """A row for each run, however it stands."""
    head = ["recipe", *["tasks"] * _many(result), "seed", "status", *METRICS, "why"]
    rows = [head]
    for outcome in result.outcomes:
        cell = outcome.cell
        numbers = [number(name, outcome[name]) if outcome.numbers else "" for name in METRICS]
        where = [cell.task_set] * _many(result)
        rows.append([cell.name, *where, str(cell.seed), outcome.status, *numbers, outcome.why])
    return rows


def exact_cells(result: Result) -> list[list[object]]:
    """As `cells`, in full precision and with the runs' folders."""
    names = ("name", "task_set", "seed", "status", *METRICS, "why", "folder")
    return [[*names], *([cell[name] for name in names] for cell in result.to_data()["cells"])]


def numbers(result: Result) -> str:
    """Means and differences as CSV, in full precision; every interval in three columns."""
    compared = ["pairs", *_three("difference"), *_three("improvement")]
    compared += ["p", "p_of_many", "p_normal", "p_normal_of_many", "verdict"]
    head = ["recipe", "tasks", "runs", "finished", *(c for m in METRICS for c in _three(m))]
    rows: list[list[object]] = [[*head, *compared]]
    for line in result.lines:
        found = [x for m in METRICS for x in vars(line.means[m]).values()]
        beside = _exact(result, line)
        beside += [""] * (len(compared) - len(beside))
        rows.append([line.name, line.task_set, line.runs, line.finished, *found, *beside])
    return separated(rows)


def number(metric: str, value: float) -> str:
    """A value as people read it; "NaN" is what it is.

    >>> number("sampled", 0.4321), number("tokens", 12345.6), number("reward", float("nan"))
    ('43.2 %', '12,346', 'NaN')
    """
    if math.isnan(value):
        return "NaN"
    if metric in SHARES:
        return f"{100 * value:.1f} %"
    digits = {"reward": 3, "seconds": int(abs(value) < 100)}.get(metric, 0)
    return f"{value:,.{digits}f}"


def interval(metric: str, one: Interval, sign: str = "") -> str:
    """A mean and its interval, which one run has not; a mean of nothing is a dash."""
    if math.isnan(one.value):
        return "-"
    value, low, high = (_bare(metric, x, sign) for x in vars(one).values())
    inside = "" if math.isnan(one.low) else f" [{low}, {high}]"
    unit = " points" if sign else " %"
    return value + inside + unit * (metric in SHARES)


def probability(p: float) -> str:
    """A p as people read it.

    >>> probability(0.25), probability(0.00004), probability(float("nan"))
    ('0.250', '<0.001', '-')
    """
    return "-" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _bare(metric: str, value: float, sign: str) -> str:
    """A value without its unit; a sign before those that have none, where wanted."""
    return sign * (value >= 0) + number(metric, value).removesuffix(" %")


def _against(result: Result, line: Line) -> list[str]:
    """How a recipe compares with the baseline; on one of several task sets nothing is tested."""
    if line.name == result.comparison.against:
        return ["baseline" * (not line.task_set), *[""] * 5]
    by = interval(result.metric, result.by(line.name, line.sets), "+")
    one = result.difference(line)
    if not one:
        return [by, *[""] * 5]
    ps = (one.signs, one.signs_of_many, one.student_of_many)
    return [by, _chance(one.improvement), *map(probability, ps), one.verdict]


def _chance(one: Interval) -> str:
    if math.isnan(one.value):
        return "-"
    inside = "" if math.isnan(one.low) else f" [{one.low:.2f}, {one.high:.2f}]"
    return f"{one.value:.2f}{inside}"


def _exact(result: Result, line: Line) -> list[object]:
    if line.name == result.comparison.against:
        return []
    pairs = sum(map(len, result.paired(line.name, line.sets)))
    by = [pairs, *vars(result.by(line.name, line.sets)).values()]
    one = result.difference(line)
    if not one:
        return by
    ps = (one.signs, one.signs_of_many, one.student, one.student_of_many)
    return [*by, *vars(one.improvement).values(), *ps, one.verdict]


def _three(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _mean(line: Line, metric: str) -> str:
    return interval(metric, line.means[metric])


def _runs(line: Line) -> str:
    return str(line.runs) if line.finished == line.runs else f"{line.finished} of {line.runs}"


def _many(result: Result) -> bool:
    return len(result.comparison.sets) > 1
