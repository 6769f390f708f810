"""A survey as a table for the terminal: how many tasks of each source are solved how often."""

from collections.abc import Sequence
from statistics import fmean

from rich.table import Table

from grupo.evidence.survey.measure import TaskSurvey
from grupo.report.escape import literal

COLUMNS = ("tasks", "never", "sometimes", "always", "pass rate", "tokens", "failed")
MAX_SOURCES = 20  # rows of the table


def survey_table(rows: Sequence[TaskSurvey]) -> Table:
    """A row for each source, the largest first, and one for all tasks.

    Columns: number of tasks, those that are never, sometimes and always solved, mean pass rate,
    mean length of an answer, and attempts that could not be scored.
    """
    table = Table(title=f"{rows[0].attempts if rows else 0} attempts per task", title_style="")
    table.add_column("source")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    sources = sorted({row.source for row in rows})
    own = {source: [row for row in rows if row.source == source] for source in sources}
    shown = sorted(own, key=lambda source: -len(own[source]))[:MAX_SOURCES]
    for source in shown if len(own) > 1 else ():
        table.add_row(literal(source), *_cells(own[source]))
    table.add_row("all", *_cells(rows))
    return table


def _cells(rows: Sequence[TaskSurvey]) -> list[str]:
    rates = [row.pass_rate for row in rows if row.failed < row.attempts]
    counts = (
        len(rows),
        sum(rate == 0 for rate in rates),
        sum(0 < rate < 1 for rate in rates),
        sum(rate == 1 for rate in rates),
    )
    mean_rate = f"{100 * fmean(rates):.1f} %" if rates else "not scored"
    length = f"{fmean(row.length_mean for row in rows):,.1f}" if rows else ""
    return [*map(str, counts), mean_rate, length, str(sum(row.failed for row in rows))]
