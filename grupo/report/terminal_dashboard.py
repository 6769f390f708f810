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
from grupo.report.html.payload import ledger, opened
from grupo.report.html.run_view import Book
from grupo.report.step_line import FACTS, Fact, clock, number

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 40  # steps, or means of several, that a line of bars shows
LAST = 3  # rollouts, findings and problems that are shown
LINES = 3  # of an answer
SHOWN = (Fact("reward/mean", "reward", number), *FACTS, Fact("time/step", "step", clock))
STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def watch(folders: Sequence[Path], console: Console, every: float = 2.0) -> None:
    """Show some runs until all have ended; once, where nobody looks on.

    Raises `Refused` for what holds no run.
    """
    books = opened(folders)
    if not console.is_interactive:
        return console.print(picture(books))
    with Live(picture(books), console=console, auto_refresh=False) as display:
        while not all(ended(book) for book in books):
            time.sleep(every)
            for book in books:
                book.refresh()
            display.update(picture(books), refresh=True)


def ended(book: Book) -> bool:
    """Has the run been summed up?"""
    return "steps" in book.summary


def picture(books: Sequence[Book]) -> Group:
    """Some runs, one below the other."""
    return Group(*(part for book in books for part in _run(book)))


def bars(values: Sequence[float]) -> str:
    """Numbers as a line of bars, from the least to the greatest; what is no number is a gap.

    >>> bars([0.0, 0.5, 1.0]), bars([2.0, float("nan"), 2.0])
    ('▁▅█', '▁ ▁')
    """
    known = [x for x in values if x == x]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((x - low) * scale)] if x == x else " " for x in values)


def _run(book: Book) -> list[RenderableType]:
    done, steps = len(book.metrics), int(book.recipe.get("steps", 0) or 0)
    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(no_wrap=True)
    head.add_column(ratio=1)
    head.add_row(_status(book, done, steps), ProgressBar(max(steps, done, 1), completed=done))
    troubles = [literal(problem, "yellow") for problem in book.problems[:LAST]]
    found = [
        literal(f"{f['severity']}: {f['name']}. {f['seen']}", STYLES[f["severity"]])
        for f in book.findings[:LAST]
    ]
    return [head, *troubles, Padding(_numbers(book), (0, 2)), *_said(book), *found, Text()]


def _status(book: Book, done: int, steps: int) -> Text:
    spent = clock(ledger(book.metrics).get("time/step", 0.0))
    how = "finished" if ended(book) else f"step {done}/{steps}" if steps else f"step {done}"
    return literal(f"{book.name}  {how}  {spent}", "bold")


def _numbers(book: Book) -> Table:
    table = Table.grid(padding=(0, 2))
    for fact in SHOWN:
        values = [_float(line[fact.name]) for line in book.metrics if fact.name in line]
        if values:
            last = literal(fact.show(values[-1]))
            table.add_row(literal(fact.label, "dim"), Text(bars(_fewer(values)), "cyan"), last)
    return table


def _fewer(values: Sequence[float]) -> list[float]:
    """At most WIDTH numbers: means of as many neighbours as it takes."""
    each = -(-len(values) // WIDTH)
    parts = (values[i : i + each] for i in range(0, len(values), each))
    return [sum(part) / len(part) for part in parts]


def _said(book: Book) -> list[RenderableType]:
    """The last rollouts."""
    if not book.shelf.groups:
        return []
    groups = book.groups(max(book.shelf.groups))
    found = (r for group in reversed(groups) for r in group["rollouts"])
    return [part for rollout in islice(found, LAST) for part in _rollout(rollout)]


def _rollout(rollout: Any) -> list[RenderableType]:
    lines = str(rollout.get("text", "")).strip().splitlines()
    more = " …" * (len(lines) > LINES)
    said = literal("\n".join(lines[:LINES]) + more)
    worth = number(_float(rollout["reward"]))
    return [literal(f"reward {worth}", "bold"), Padding(said, (0, 0, 0, 2))]


def _float(value: Any) -> float:
    return float(value) if isinstance(value, int | float | str) else float("nan")
