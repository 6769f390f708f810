"""A result as tables: CSV, Markdown, LaTeX, and on a terminal."""

import csv
import io
import math
from collections.abc import Sequence

from rich.table import Table as Shown

from grupo.comparing.comparison import METRICS
from grupo.comparing.result import Difference, Line, Result
from grupo.comparing.statistics import Interval
from grupo.report.literal import literal

SHARES = ("sampled", "greedy", "signal")
TEX = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
Rows = list[list[str]]


def main(result: Result) -> Rows:
    """A row for each recipe: its runs, the metric, and how it compares with the baseline."""
    metric, against = result.metric, result.comparison.against
    by_name = {one.name: one for one in result.differences}
    beside = [name for name in ("reward", "signal", "steps", "tokens", "seconds") if name != metric]
    head = ["recipe", *["tasks"] * _many(result), "runs", metric, f"against {against}"]
    head += ["P(above)", "p", "p of many", "p of many, normal", "", *beside]
    rows = [head]
    for line in result.lines:
        one = by_name.get(line.name) if not line.task_set else None
        where = [line.task_set or "all"] * _many(result)
        means = [_mean(line, name) for name in beside]
        same = line.name == against and not line.task_set
        shown = _compared(one, metric) if one else ["baseline" * same, "", "", "", "", ""]
        rows.append([line.name, *where, _runs(line), _mean(line, metric), *shown, *means])
    return rows


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


def markdown(rows: Rows) -> str:
    """Rows as Markdown; the first is the head.

    >>> print(markdown([["a", "b"], ["1|2", "3"]]), end="")
    | a | b |
    | --- | --- |
    | 1\\|2 | 3 |
    """
    head, *rest = ([cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rest])


def latex(rows: Rows) -> str:
    """Rows as a table of LaTeX, with the rules of booktabs."""
    head, *rest = ([_tex(cell) for cell in row] for row in rows)
    lines = [" & ".join(row) + r" \\" for row in (head, *rest)]
    columns = "l" + "r" * (len(head) - 1)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    body = [begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", end]
    return "\n".join([r"% \usepackage{booktabs}", *body]) + "\n"


def numbers(result: Result) -> str:
    """Means and differences as CSV, in full precision; every interval in three columns."""
    by_name = {one.name: one for one in result.differences}
    compared = ["pairs", *_three("difference"), *_three("improvement")]
    compared += ["p", "p_of_many", "p_normal", "p_normal_of_many", "verdict"]
    head = ["recipe", "tasks", "runs", "finished", *(c for m in METRICS for c in _three(m))]
    rows: list[list[object]] = [[*head, *compared]]
    for line in result.lines:
        one = by_name.get(line.name) if not line.task_set else None
        found = [x for m in METRICS for x in vars(line.means[m]).values()]
        beside = _exact(one) if one else [""] * len(compared)
        rows.append([line.name, line.task_set, line.runs, line.finished, *found, *beside])
    return separated(rows)


def separated(rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def shown(rows: Rows, title: str) -> Shown:
    """Rows on a terminal."""
    table = Shown(title=literal(title), title_style="")
    for place, name in enumerate(rows[0]):
        table.add_column(literal(name), justify="right" if place else "left")
    for row in rows[1:]:
        table.add_row(*map(literal, row))
    return table


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


def _compared(one: Difference, metric: str) -> list[str]:
    return [
        interval(metric, one.by, "+"),
        _chance(one.improvement),
        probability(one.signs),
        probability(one.signs_of_many),
        probability(one.student_of_many),
        one.verdict,
    ]


def _chance(one: Interval) -> str:
    if math.isnan(one.value):
        return "-"
    inside = "" if math.isnan(one.low) else f" [{one.low:.2f}, {one.high:.2f}]"
    return f"{one.value:.2f}{inside}"


def _exact(one: Difference) -> list[object]:
    ps = (one.signs, one.signs_of_many, one.student, one.student_of_many)
    both = (*vars(one.by).values(), *vars(one.improvement).values())
    return [one.pairs, *both, *ps, one.verdict]


def _three(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]


def _mean(line: Line, metric: str) -> str:
    return interval(metric, line.means[metric])


def _runs(line: Line) -> str:
    return str(line.runs) if line.finished == line.runs else f"{line.finished} of {line.runs}"


def _many(result: Result) -> bool:
    return len(result.comparison.sets) > 1


def _tex(cell: str) -> str:
    return cell.translate(TEX).replace("<", "$<$")
