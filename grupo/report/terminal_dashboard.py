"""`grupo watch` on a terminal: live metrics, rollouts and findings of one or several runs."""

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

from grupo.report.escape import literal, literal_line
from grupo.report.html.payload import open_begun_runs, open_runs, token_and_time_totals
from grupo.report.html.run_view import RunView
from grupo.report.step_line import METRIC_CELLS, MetricCell, format_duration, format_number
from grupo.storage.pipeline_dirs import stage_folders

SPARK_CHARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 40  # bars of a sparkline: steps, or means over several steps
MAX_ITEMS = 3  # rollouts, findings and problems shown of each run
MAX_LINES = 3  # lines shown of a rollout
SHOWN_METRICS = (
    MetricCell("reward/mean", "reward", format_number),
    *METRIC_CELLS,
    MetricCell("time/step", "step", format_duration),
)
SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def watch_runs(folders: Sequence[Path], console: Console, refresh_seconds: float = 2.0) -> None:
    """Show runs until all have finished; print them once if the console is not interactive.

    Args:
        folders: the folders of the runs.
        console: the rich console to print on.
        refresh_seconds: seconds between two reads of the folders.

    Raises:
        ConfigError: a folder holds no run.
    """
    runs = open_runs(folders)
    if not console.is_interactive:
        return console.print(dashboard(runs))
    with Live(dashboard(runs), console=console, auto_refresh=False) as display:
        while not all(is_finished(run) for run in runs) or _are_stages_left(folders):
            time.sleep(refresh_seconds)
            open_begun_runs(folders, runs)
            for run in runs:
                run.refresh()
            display.update(dashboard(runs), refresh=True)


def _are_stages_left(folders: Sequence[Path]) -> bool:
    """True if the last stage of a pipeline has not finished."""
    return any(not stages[-1].is_finished for stages in map(stage_folders, folders) if stages)


def is_finished(run: RunView) -> bool:
    """True once the run has written its summary."""
    return "steps" in run.summary


def dashboard(runs: Sequence[RunView]) -> Group:
    """The runs, one below the other."""
    return Group(*(part for run in runs for part in _run_panel(run)))


def sparkline(values: Sequence[float]) -> str:
    """Numbers as a line of bars scaled from the minimum to the maximum; NaN is a gap.

    >>> sparkline([0.0, 0.5, 1.0]), sparkline([2.0, float("nan"), 2.0])
    ('▁▅█', '▁ ▁')
    """
    known = [x for x in values if x == x]
    low = min(known, default=0.0)
    high = max(known, default=0.0)
    scale = (len(SPARK_CHARS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARK_CHARS[round((x - low) * scale)] if x == x else " " for x in values)


def _run_panel(run: RunView) -> list[RenderableType]:
    done = len(run.metrics)
    steps = int(run.recipe.get("max_steps", 0) or 0)
    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(no_wrap=True)
    head.add_column(ratio=1)
    head.add_row(_status(run, done, steps), ProgressBar(max(steps, done, 1), completed=done))
    problems = [literal_line(problem, "yellow") for problem in run.problems[:MAX_ITEMS]]
    findings = [
        literal_line(
            f"{f['severity']}: {f['name']}. {f['details']}", SEVERITY_STYLES[f["severity"]]
        )
        for f in run.findings[:MAX_ITEMS]
    ]
    return [
        head,
        *problems,
        Padding(_metric_table(run), (0, 2)),
        *_last_rollouts(run),
        *findings,
        Text(),
    ]


def _status(run: RunView, done: int, steps: int) -> Text:
    seconds = token_and_time_totals(run.metrics).get("time/step", 0.0)
    position = f"step {done}/{steps}" if steps else f"step {done}"
    status = "finished" if is_finished(run) else position
    return literal_line(f"{run.name}  {status}  {format_duration(seconds)}", "bold")


def _metric_table(run: RunView) -> Table:
    table = Table.grid(padding=(0, 2))
    for cell in SHOWN_METRICS:
        values = [_float(line[cell.name]) for line in run.metrics if cell.name in line]
        if values:
            bars = Text(sparkline(_downsample(values)), "cyan")
            table.add_row(literal(cell.label, "dim"), bars, literal(cell.format_value(values[-1])))
    return table


def _downsample(values: Sequence[float]) -> list[float]:
    """At most `SPARK_WIDTH` numbers: means over equally many neighbours."""
    size = -(-len(values) // SPARK_WIDTH)
    windows = (values[i : i + size] for i in range(0, len(values), size))
    return [sum(window) / len(window) for window in windows]


def _last_rollouts(run: RunView) -> list[RenderableType]:
    """The rollouts that were generated last."""
    if not run.journal_index.groups:
        return []
    groups = run.groups(max(run.journal_index.groups))
    rollouts = (r for group in reversed(groups) for r in group["rollouts"])
    return [part for rollout in islice(rollouts, MAX_ITEMS) for part in _rollout(rollout)]


def _rollout(rollout: Any) -> list[RenderableType]:
    lines = str(rollout.get("text", "")).strip().splitlines()
    ellipsis = " …" * (len(lines) > MAX_LINES)
    text = literal("\n".join(lines[:MAX_LINES]) + ellipsis)
    reward = format_number(_float(rollout["reward"]))
    return [literal(f"reward {reward}", "bold"), Padding(text, (0, 0, 0, 2))]


def _float(value: Any) -> float:
    """The number; NaN for a value that is none, as a file from elsewhere may hold."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
