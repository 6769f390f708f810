"""A comparison from its recipes to its report."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from grupo.compare import manifest, plots, summary_text, table_formats, tables, toy_models
from grupo.compare.cost_estimate import Plan, plan
from grupo.compare.experiment import Cell, Comparison, cells
from grupo.compare.result import Result
from grupo.compare.run_status import CRASHED, TO_DO, Outcome, forgive, look
from grupo.compare.scheduler import Audience, Machine, Nobody, train_all
from grupo.compare.validate import check, check_there
from grupo.core.errors import Refused
from grupo.storage import strict_json
from grupo.storage.atomic_files import make_folder, write_atomically
from grupo.storage.lock import Lock
from grupo.training.callbacks import Silent, Watcher

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
        manifest.write(comparison, out)
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
        drawn = plots.draw(result, out)
    except Refused as error:  # without matplotlib there are no pictures, and all the rest
        say(str(error))
        drawn = []
    rows, caption = tables.main(result), summary_text.caption(result)
    files = {
        "results.json": strict_json.text(result.to_data()) + "\n",
        "table.csv": tables.numbers(result),
        "cells.csv": table_formats.separated(tables.exact_cells(result)),
        "table.md": f"{caption}\n\n{table_formats.markdown(rows)}",
        "table.tex": table_formats.latex(rows, caption),
        "report.md": summary_text.report(result, drawn),
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
    for one in toy_models.wanted(comparison.grown, (cell.recipe for cell in left)):
        watcher.said(f"{one.home} is grown first.")
        toy_models.grow(one, watcher)
