"""A comparison from its recipes to its report."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from grupo.comparing import formats, growing, pictures, stored, tables, words
from grupo.comparing.checking import check, check_there
from grupo.comparing.comparison import Cell, Comparison, cells
from grupo.comparing.outcome import CRASHED, TO_DO, Outcome, forgive, look
from grupo.comparing.plan import Plan, plan
from grupo.comparing.queue import Audience, Machine, Nobody, train_all
from grupo.comparing.result import Result
from grupo.errors import Refused
from grupo.storage import plain
from grupo.storage.files import make_folder, write_atomically
from grupo.storage.lock import Lock
from grupo.watch import Silent, Watcher

Say = Callable[[str], None]
Look = Callable[[Sequence[Outcome]], Audience]  # who looks on, once it is known what there is


def nobody(outcomes: Sequence[Outcome]) -> Audience:
    """Nobody looks on."""
    return Nobody()


def compare(
    comparison: Comparison,
    out: str | Path,
    *,
    workers: int = 0,
    threads: int = 1,
    retry: bool = False,
    audience: Look = nobody,
    watcher: Watcher = Silent(),
) -> Result:
    """Train every cell that is not finished, and write in `out` what all came to.

    `workers` cells side by side, 0: as many as there are GPUs, or cores by `threads`. A cell that
    crashed is left as it is unless `retry`. Stopped at any moment, the same call goes on.

    Raises `Refused`, before any work starts, for what cannot be compared.
    """
    out, machine = Path(out), Machine.here(workers, threads)
    left = _left(comparison, out, (*TO_DO, CRASHED) if retry else TO_DO)
    make_folder(out)
    with Lock(out / "lock"):
        stored.write(comparison, out)
        _grow(comparison, left, watcher)
        for cell in left:
            forgive(cell.folder)
        try:
            train_all(left, machine, audience(_looked(comparison, out)))
        finally:
            result = written(comparison, out)
    return result


def planned(
    comparison: Comparison,
    out: Path,
    *,
    workers: int = 0,
    threads: int = 1,
    audience: Audience = Nobody(),
    watcher: Watcher = Silent(),
) -> Plan:
    """What it will cost; leaves nothing in `out`."""
    machine = Machine.here(workers, threads)
    _grow(comparison, _left(comparison, out, TO_DO), watcher)
    return plan(_looked(comparison, out), comparison.budget, machine, audience)


def written(comparison: Comparison, out: Path, say: Say = lambda line: None) -> Result:
    """What is known by now, written as data, tables, pictures and a page."""
    result = Result(comparison, _looked(comparison, out))
    try:
        drawn = pictures.draw(result, out)
    except Refused as error:  # without matplotlib there are no pictures, and all the rest
        say(str(error))
        drawn = []
    rows, caption = tables.main(result), words.caption(result)
    files = {
        "results.json": plain.text(result.to_data()) + "\n",
        "table.csv": tables.numbers(result),
        "cells.csv": formats.separated(tables.exact_cells(result)),
        "table.md": f"{caption}\n\n{formats.markdown(rows)}",
        "table.tex": formats.latex(rows, caption),
        "report.md": words.report(result, drawn),
    }
    for name, text in files.items():
        write_atomically(out / name, text)
    return result


def _looked(comparison: Comparison, out: Path) -> list[Outcome]:
    """How every cell stands."""
    return [look(cell) for cell in cells(comparison, out)]


def _left(comparison: Comparison, out: Path, statuses: Collection[str]) -> list[Cell]:
    """The cells that stand so; refuses what cannot be compared, and what they need and lack."""
    check(comparison)
    left = [one.cell for one in _looked(comparison, out) if one.status in statuses]
    check_there(left, comparison.grown)
    return left


def _grow(comparison: Comparison, left: Sequence[Cell], watcher: Watcher) -> None:
    """Grow the models that cells want and nobody grew yet, once for all."""
    for one in growing.wanted(comparison.grown, (cell.recipe for cell in left)):
        watcher.said(f"{one.home} is grown first.")
        growing.grow(one, watcher)
