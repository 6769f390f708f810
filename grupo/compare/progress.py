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

from grupo.compare.budget import Budget, Spent, share
from grupo.compare.experiment import Cell
from grupo.compare.run_status import FINISHED, LOG, TO_DO, Outcome
from grupo.report.escape import literal
from grupo.report.step_line import clock
from grupo.training.metrics import mean

SAID_EVERY = 60.0  # seconds between lines where nobody looks


@dataclass
class Meter:
    """What a run has spent, read on from where the last look at its journal ended."""

    path: Path
    spent: Spent = Spent()
    offset: int = 0
    began: float = field(default_factory=time.monotonic)
    before: float = 0.0  # the share of its budget that it had used when it was started

    def read(self) -> Spent:
        """What it has spent by now; a resumed run's journal is shorter than it was."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < self.offset:
            self.spent, self.offset = Spent(), 0
        if size > self.offset:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                whole = file.read().rpartition(b"\n")[0]
            self.offset += len(whole) + bool(whole)
            for line in whole.splitlines():
                self._add(json.loads(line))
        return self.spent

    def left(self, budget: Budget) -> float:
        """Seconds that it still takes at the pace since its start; NaN while none is known."""
        done = share(budget, self.read())
        passed, gained = time.monotonic() - self.began, done - self.before
        return passed * (1 - done) / gained if gained > 0 else math.nan

    def _add(self, step: dict[str, float]) -> None:
        was = self.spent
        self.spent = replace(
            was,
            steps=was.steps + 1,
            tokens=was.tokens + step["tokens/sampled"],
            seconds=was.seconds + step["time/step"],
        )


class Board:
    """Shows a queue of cells: a table that changes in place, or a line now and then."""

    def __init__(
        self, console: Console, budget: Budget, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.console, self.budget, self.now = console, budget, now
        self.counts, self.left = Counter[str](), 0
        self.meters: dict[str, Meter] = {}
        self.took: list[float] = []  # seconds of each cell that ended
        self.said_at = now()
        self.display = Live(console=console, get_renderable=self.table, transient=True)

    def begun(self, outcomes: Sequence[Outcome]) -> "Board":
        """What there is to be done."""
        self.left = sum(outcome.status in TO_DO for outcome in outcomes)
        self.counts.update(o.status for o in outcomes if o.status not in TO_DO)
        for outcome in outcomes:
            if outcome.status not in (FINISHED, *TO_DO):
                self._say(f"{outcome.cell}: {outcome.status}, left as it is: {outcome.why}")
        self._say(self._count())
        if self.console.is_interactive:
            self.display.start()
        return self

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def started(self, cell: Cell) -> None:
        meter = self.meters[str(cell)] = Meter(cell.folder / "metrics.jsonl")
        meter.before = share(self.budget, meter.read())
        self._say(f"{cell}: started")

    def ended(self, outcome: Outcome) -> None:
        cell = outcome.cell
        meter = self.meters.pop(str(cell))
        self.left -= 1
        self.took.append(self.now() - meter.began)
        why = f": {outcome.why}. Its log: {cell.folder / LOG}" * bool(outcome.why)
        self.counts[outcome.status] += 1
        self._say(f"{cell}: {outcome.status}{why} ({self._count()})")

    def looked(self) -> None:
        if self.console.is_interactive or self.now() - self.said_at < SAID_EVERY:
            return
        self.said_at = self.now()
        used = (f"{name} at {self._used(meter):.0f} %" for name, meter in self.meters.items())
        self._say("; ".join([*used, self._count()]))

    def table(self) -> Table:
        """What runs now."""
        table = Table(title=self._count(), title_style="")
        for column in ("running", "step", "tokens", f"of the {self.budget.unit}", "left"):
            table.add_column(column, justify="left" if column == "running" else "right")
        for name, meter in list(self.meters.items()):  # another thread may add to them
            used, left, spent = self._used(meter), meter.left(self.budget), meter.spent
            row = (str(spent.steps), f"{spent.tokens:,.0f}", f"{used:.0f} %", _clock(left))
            table.add_row(literal(name), *row)
        return table

    def _used(self, meter: Meter) -> float:
        return 100 * share(self.budget, meter.read())

    def _count(self) -> str:
        words = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"{words or 'none finished'}, {self.left} left, {_clock(self._rest())}"

    def _rest(self) -> float:
        """Seconds until all have ended, those to come being as long as those that ended."""
        running = [meter.left(self.budget) for meter in list(self.meters.values())]
        to_come = (self.left - len(running)) * mean(self.took) if self.left > len(running) else 0.0
        return (sum(running) + to_come) / max(1, len(running))

    def _say(self, line: str) -> None:
        self.console.print(literal(line), soft_wrap=not self.console.is_interactive)


def _clock(seconds: float) -> str:
    return f"about {clock(seconds)}" if math.isfinite(seconds) else "not known yet"
