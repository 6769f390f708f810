"""How far cells are: read from their journals, shown while they train."""

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
from grupo.compare.run_status import FINISHED, LOG_FILE, UNFINISHED, RunStatus
from grupo.report.escape import literal
from grupo.report.step_line import format_duration
from grupo.training.metrics import mean

PRINT_INTERVAL = 60.0  # seconds between lines where nobody looks


@dataclass
class RunProgress:
    """What a run has spent, read on from where the last look at its journal ended."""

    path: Path
    usage: Usage = Usage()
    offset: int = 0
    started_at: float = field(default_factory=time.monotonic)
    initial_fraction: float = 0.0  # the share of its budget that it had used when it was started

    def refresh(self) -> Usage:
        """What it has spent by now; a resumed run's journal is shorter than it was."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < self.offset:
            self.usage, self.offset = Usage(), 0
        if size > self.offset:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                whole = file.read().rpartition(b"\n")[0]
            self.offset += len(whole) + bool(whole)
            for line in whole.splitlines():
                self._add_step(json.loads(line))
        return self.usage

    def seconds_left(self, budget: Budget) -> float:
        """Seconds that it still takes at the pace since its start; NaN while none is known."""
        done = used_fraction(budget, self.refresh())
        passed, gained = time.monotonic() - self.started_at, done - self.initial_fraction
        return passed * (1 - done) / gained if gained > 0 else math.nan

    def _add_step(self, step: dict[str, float]) -> None:
        was = self.usage
        self.usage = replace(
            was,
            steps=was.steps + 1,
            tokens=was.tokens + step["tokens/generated"],
            seconds=was.seconds + step["time/step"],
        )


class ProgressBoard:
    """Shows a queue of cells: a table that changes in place, or a line now and then."""

    def __init__(
        self, console: Console, budget: Budget, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.console, self.budget, self.now = console, budget, now
        self.counts, self.remaining = Counter[str](), 0
        self.progress_by_run: dict[str, RunProgress] = {}
        self.durations: list[float] = []  # seconds of each cell that ended
        self.last_printed_at = now()
        self.display = Live(console=console, get_renderable=self.table, transient=True)

    def start(self, run_statuses: Sequence[RunStatus]) -> "ProgressBoard":
        """What there is to be done."""
        self.remaining = sum(outcome.status in UNFINISHED for outcome in run_statuses)
        self.counts.update(o.status for o in run_statuses if o.status not in UNFINISHED)
        for outcome in run_statuses:
            if outcome.status not in (FINISHED, *UNFINISHED):
                self._print_line(
                    f"{outcome.run_spec}: {outcome.status}, left as it is: {outcome.reason}"
                )
        self._print_line(self._count_summary())
        if self.console.is_interactive:
            self.display.start()
        return self

    def __enter__(self) -> "ProgressBoard":
        return self

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def on_run_start(self, run_spec: RunSpec) -> None:
        meter = self.progress_by_run[str(run_spec)] = RunProgress(run_spec.folder / "metrics.jsonl")
        meter.initial_fraction = used_fraction(self.budget, meter.refresh())
        self._print_line(f"{run_spec}: started")

    def on_run_end(self, run_status: RunStatus) -> None:
        cell = run_status.run_spec
        meter = self.progress_by_run.pop(str(cell))
        self.remaining -= 1
        self.durations.append(self.now() - meter.started_at)
        why = f": {run_status.reason}. Its log: {cell.folder / LOG_FILE}" * bool(run_status.reason)
        self.counts[run_status.status] += 1
        self._print_line(f"{cell}: {run_status.status}{why} ({self._count_summary()})")

    def on_poll(self) -> None:
        if self.console.is_interactive or self.now() - self.last_printed_at < PRINT_INTERVAL:
            return
        self.last_printed_at = self.now()
        used = (
            f"{name} at {self._used_percent(meter):.0f} %"
            for name, meter in self.progress_by_run.items()
        )
        self._print_line("; ".join([*used, self._count_summary()]))

    def table(self) -> Table:
        """What runs now."""
        table = Table(title=self._count_summary(), title_style="")
        for column in ("running", "step", "tokens", f"of the {self.budget.unit}", "left"):
            table.add_column(column, justify="left" if column == "running" else "right")
        for name, meter in list(self.progress_by_run.items()):  # another thread may add to them
            used, left, spent = (
                self._used_percent(meter),
                meter.seconds_left(self.budget),
                meter.usage,
            )
            row = (str(spent.steps), f"{spent.tokens:,.0f}", f"{used:.0f} %", _clock(left))
            table.add_row(literal(name), *row)
        return table

    def _used_percent(self, progress: RunProgress) -> float:
        return 100 * used_fraction(self.budget, progress.refresh())

    def _count_summary(self) -> str:
        words = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"{words or 'none finished'}, {self.remaining} left, {_clock(self._seconds_left())}"

    def _seconds_left(self) -> float:
        """Seconds until all have ended, those to come being as long as those that ended."""
        running = [meter.seconds_left(self.budget) for meter in list(self.progress_by_run.values())]
        to_come = (
            (self.remaining - len(running)) * mean(self.durations)
            if self.remaining > len(running)
            else 0.0
        )
        return (sum(running) + to_come) / max(1, len(running))

    def _print_line(self, line: str) -> None:
        self.console.print(literal(line), soft_wrap=not self.console.is_interactive)


def _clock(seconds: float) -> str:
    return f"about {format_duration(seconds)}" if math.isfinite(seconds) else "not known yet"
