"""The progress of the runs of a comparison: read from their journals, shown on the console."""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from grupo.compare.budget import Budget, Usage, used_fraction
from grupo.compare.experiment import RunSpec
from grupo.compare.run_status import FINISHED, LOG_FILE, NOT_NEEDED, UNFINISHED, RunStatus
from grupo.report.escape import literal
from grupo.report.step_line import format_duration
from grupo.training.update.metrics import mean
from grupo.util.limits import JOURNAL_LINE
from grupo.util.regular_files import read_lines
from grupo.util.run_files import METRICS_FILE

PRINT_INTERVAL = 60.0  # seconds between lines on a console that is not interactive


@dataclass
class RunProgress:
    """The usage of a run, read incrementally from its journal.

    Args:
        path: the run's `metrics.jsonl`.
        usage: the usage so far.
        offset: the bytes read so far.
        started_at: when the run was started, in monotonic seconds.
        initial_fraction: the used fraction of the budget when the run was started.
        updates_per_step: updates of the optimizer in each step.
    """

    path: Path
    usage: Usage = Usage()
    offset: int = 0
    started_at: float = field(default_factory=time.monotonic)
    initial_fraction: float = 0.0
    updates_per_step: int = 0

    def refresh(self) -> Usage:
        """Read the new lines and return the usage; a truncated journal is read from its start."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < self.offset:
            self.usage = Usage()
            self.offset = 0
        if size > self.offset:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                for line in read_lines(file, JOURNAL_LINE):
                    if not line.endswith(b"\n"):
                        break
                    self.offset += len(line)
                    self._add_step(json.loads(line))
        return self.usage

    def seconds_left(self, budget: Budget) -> float:
        """Estimated seconds until the budget is used; NaN without progress since the start."""
        used = used_fraction(budget, self.refresh())
        elapsed = time.monotonic() - self.started_at
        gained = used - self.initial_fraction
        return elapsed * (1 - used) / gained if gained > 0 else math.nan

    def _add_step(self, step: dict[str, float]) -> None:
        self.usage = replace(
            self.usage,
            steps=self.usage.steps + 1,
            tokens=self.usage.tokens + step["tokens/generated"],
            seconds=self.usage.seconds + step["time/step"],
            updates=self.usage.updates + self.updates_per_step,
        )


class ProgressBoard:
    """Shows the progress of all runs: a live table, or a line every `PRINT_INTERVAL` seconds.

    Args:
        console: the rich console to print on.
        budget: the budget of each run.
        now: the clock, in seconds.
    """

    def __init__(
        self, console: Console, budget: Budget, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.console = console
        self.budget = budget
        self.now = now
        self.counts = Counter[str]()
        self.remaining = 0
        self.progress_by_run: dict[str, RunProgress] = {}
        self.durations: list[float] = []  # seconds of each finished run
        self.last_printed_at = now()
        self.display = Live(console=console, get_renderable=self.table, transient=True)

    def start(self, run_statuses: Sequence[RunStatus]) -> "ProgressBoard":
        """Show the initial status of the runs."""
        self.remaining = sum(run.status in UNFINISHED for run in run_statuses)
        self.counts.update(run.status for run in run_statuses if run.status not in UNFINISHED)
        for run in run_statuses:
            if run.status not in (FINISHED, NOT_NEEDED, *UNFINISHED):
                self._print_line(f"{run.run_spec}: {run.status}, not trained: {run.reason}")
        self._print_line(self._count_summary())
        if self.console.is_interactive:
            self.display.start()
        return self

    def __enter__(self) -> "ProgressBoard":
        return self

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def on_run_start(self, run_spec: RunSpec) -> None:
        progress = RunProgress(
            run_spec.folder / METRICS_FILE, updates_per_step=run_spec.recipe.updates_per_step
        )
        progress.initial_fraction = used_fraction(self.budget, progress.refresh())
        self.progress_by_run[str(run_spec)] = progress
        self._print_line(f"{run_spec}: started")

    def on_run_end(self, run_status: RunStatus) -> None:
        run_spec = run_status.run_spec
        status = run_status.status
        progress = self.progress_by_run.pop(str(run_spec))
        self.remaining -= 1
        self.durations.append(self.now() - progress.started_at)
        log = run_spec.folder / LOG_FILE
        reason = f": {run_status.reason}. Its log: {log}" * bool(run_status.reason)
        self.counts[status] += 1
        self._print_line(f"{run_spec}: {status}{reason} ({self._count_summary()})")

    def on_run_skip(self, run_spec: RunSpec) -> None:
        self.remaining -= 1
        self.counts[NOT_NEEDED] += 1
        self._print_line(f"{run_spec}: {NOT_NEEDED} ({self._count_summary()})")

    def on_poll(self) -> None:
        if self.console.is_interactive or self.now() - self.last_printed_at < PRINT_INTERVAL:
            return
        self.last_printed_at = self.now()
        used = (
            f"{name} at {self._used_percent(progress):.0f} %"
            for name, progress in self.progress_by_run.items()
        )
        self._print_line("; ".join([*used, self._count_summary()]))

    def table(self) -> Table:
        """The running runs as a table."""
        table = Table(title=self._count_summary(), title_style="")
        for column in ("running", "step", "tokens", f"of the {self.budget.unit}", "left"):
            table.add_column(column, justify="left" if column == "running" else "right")
        for name, progress in list(self.progress_by_run.items()):  # other threads may add runs
            used = self._used_percent(progress)
            left = progress.seconds_left(self.budget)
            steps = progress.usage.steps
            tokens = progress.usage.tokens
            table.add_row(
                literal(name), str(steps), f"{tokens:,.0f}", f"{used:.0f} %", _clock(left)
            )
        return table

    def _used_percent(self, progress: RunProgress) -> float:
        return 100 * used_fraction(self.budget, progress.refresh())

    def _count_summary(self) -> str:
        words = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"{words or 'none finished'}, {self.remaining} left, {_clock(self._seconds_left())}"

    def _seconds_left(self) -> float:
        """Estimated seconds until all runs have ended, from the mean duration of ended runs."""
        active = list(self.progress_by_run.values())
        running = [progress.seconds_left(self.budget) for progress in active]
        num_waiting = self.remaining - len(running)
        waiting = num_waiting * mean(self.durations) if num_waiting > 0 else 0.0
        return (sum(running) + waiting) / max(1, len(running))

    def _print_line(self, line: str) -> None:
        self.console.print(literal(line), soft_wrap=not self.console.is_interactive)


def _clock(seconds: float) -> str:
    return f"about {format_duration(seconds)}" if math.isfinite(seconds) else "unknown time left"
