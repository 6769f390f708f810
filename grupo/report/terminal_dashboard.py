"""A run under way on a terminal, for whoever has no browser at hand."""

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grupo.report.escape import literal
from grupo.report.html.payload import open_runs, token_and_time_totals
from grupo.report.html.run_view import RunView
from grupo.report.step_line import METRIC_CELLS, MetricCell, format_duration, format_number

SPARK_CHARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 40  # steps, or means of several, that a line of bars shows
MAX_ITEMS = 3  # rollouts, findings and problems that are shown
MAX_LINES = 3  # of an answer
SHOWN_METRICS = (
    MetricCell("reward/mean", "reward", format_number),
    *METRIC_CELLS,
    MetricCell("time/step", "step", format_duration),
)
SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def watch_runs(folders: Sequence[Path], console: Console, refresh_seconds: float = 2.0) -> None:
    """Show some runs until all have ended; once, where nobody looks on.

    Raises `ConfigError` for what holds no run.
    """
    books = open_runs(folders)
    if not console.is_interactive:
        return console.print(dashboard(books))
    with Live(dashboard(books), console=console, auto_refresh=False) as display:
        while not all(is_finished(book) for book in books):
            time.sleep(refresh_seconds)
            for book in books:
                book.refresh()
            display.update(dashboard(books), refresh=True)


def is_finished(run: RunView) -> bool:
    """Has the run been summed up?"""
    return "steps" in run.summary


def dashboard(runs: Sequence[RunView]) -> Group:
    """Some runs, one below the other."""
    return Group(*(part for book in runs for part in _run_panel(book)))


def sparkline(values: Sequence[float]) -> str:
    """Numbers as a line of bars, from the least to the greatest; what is no number is a gap.

    >>> sparkline([0.0, 0.5, 1.0]), sparkline([2.0, float("nan"), 2.0])
    ('▁▅█', '▁ ▁')
    """
    known = [x for x in values if x == x]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(SPARK_CHARS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARK_CHARS[round((x - low) * scale)] if x == x else " " for x in values)


def _run_panel(run: RunView) -> list[RenderableType]:
    done, steps = len(run.metrics), int(run.recipe.get("steps", 0) or 0)
    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(no_wrap=True)
    head.add_column(ratio=1)
    head.add_row(_status(run, done, steps), ProgressBar(max(steps, done, 1), completed=done))
    troubles = [literal(problem, "yellow") for problem in run.problems[:MAX_ITEMS]]
    found = [
        literal(f"{f['severity']}: {f['name']}. {f['seen']}", SEVERITY_STYLES[f["severity"]])
        for f in run.findings[:MAX_ITEMS]
    ]
    return [
        head,
        *troubles,
        Padding(_metric_table(run), (0, 2)),
        *_last_rollouts(run),
        *found,
        Text(),
    ]


def _status(run: RunView, done: int, steps: int) -> Text:
    spent = format_duration(token_and_time_totals(run.metrics).get("time/step", 0.0))
    how = "finished" if is_finished(run) else f"step {done}/{steps}" if steps else f"step {done}"
    return literal(f"{run.name}  {how}  {spent}", "bold")


def _metric_table(run: RunView) -> Table:
    table = Table.grid(padding=(0, 2))
    for fact in SHOWN_METRICS:
        values = [_float(line[fact.name]) for line in run.metrics if fact.name in line]
        if values:
            last = literal(fact.format_value(values[-1]))
            table.add_row(
                literal(fact.label, "dim"), Text(sparkline(_downsample(values)), "cyan"), last
            )
    return table


def _downsample(values: Sequence[float]) -> list[float]:
    """At most WIDTH numbers: means of as many neighbours as it takes."""
    each = -(-len(values) // SPARK_WIDTH)
    parts = (values[i : i + each] for i in range(0, len(values), each))
    return [sum(part) / len(part) for part in parts]


def _last_rollouts(run: RunView) -> list[RenderableType]:
    """The last rollouts."""
    if not run.journal_index.groups:
        return []
    groups = run.groups(max(run.journal_index.groups))
    found = (r for group in reversed(groups) for r in group["rollouts"])
    return [part for rollout in islice(found, MAX_ITEMS) for part in _rollout(rollout)]


def _rollout(rollout: Any) -> list[RenderableType]:
    lines = str(rollout.get("text", "")).strip().splitlines()
    more = " …" * (len(lines) > MAX_LINES)
    said = literal("\n".join(lines[:MAX_LINES]) + more)
    worth = format_number(_float(rollout["reward"]))
    return [literal(f"reward {worth}", "bold"), Padding(said, (0, 0, 0, 2))]


def _float(value: Any) -> float:
    return float(value) if isinstance(value, int | float | str) else float("nan")
