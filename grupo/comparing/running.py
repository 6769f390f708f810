"""A comparison from its recipes to its report."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from grupo.comparing import growing, pictures, stored, tables, words
from grupo.comparing.comparison import Cell, Comparison, cells, check
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
    check(comparison)
    out = Path(out)
    make_folder(out)
    with Lock(out / "lock"):
        every = cells(comparison, out)
        before = [look(cell) for cell in every]
        stored.write(comparison, out)
        if retry:
            before = [_again(outcome) for outcome in before]
        ready(comparison, every, watcher)
        try:
            left = [outcome.cell for outcome in before if outcome.status in TO_DO]
            train_all(left, machine(workers, threads), audience(before))
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
    check(comparison)
    every = cells(comparison, out)
    outcomes = [look(cell) for cell in every]
    ready(comparison, every, watcher)
    return plan(outcomes, comparison.budget, machine(workers, threads), audience)


def written(comparison: Comparison, out: Path, say: Say = lambda line: None) -> Result:
    """What is known by now, written as data, tables, pictures and a page."""
    result = Result(comparison, [look(cell) for cell in cells(comparison, out)])
    try:
        drawn = pictures.draw(result, out)
    except Refused as error:  # without matplotlib there are no pictures, and all the rest
        say(str(error))
        drawn = []
    rows = tables.main(result)
    files = {
        "results.json": plain.text(result.to_data()) + "\n",
        "table.csv": tables.numbers(result),
        "cells.csv": tables.separated(tables.exact_cells(result)),
        "table.md": tables.markdown(rows),
        "table.tex": tables.latex(rows),
        "report.md": words.report(result, drawn),
    }
    for name, text in files.items():
        write_atomically(out / name, text)
    return result


def ready(comparison: Comparison, every: Sequence[Cell], watcher: Watcher) -> None:
    """Grow the models that are wanted and missing, once for all."""
    for one in growing.wanted(comparison.grown, (cell.recipe for cell in every)):
        watcher.said(f"{one.home} is grown first.")
        growing.grow(one, watcher)


def machine(workers: int, threads: int) -> Machine:
    """The share of this machine that is used."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    gpus = given.split(",") if given else list(map(str, range(torch.cuda.device_count())))
    return Machine.here(workers, threads, gpus[: torch.cuda.device_count()])


def _again(outcome: Outcome) -> Outcome:
    if outcome.status != CRASHED:
        return outcome
    forgive(outcome.cell.folder)
    return look(outcome.cell)
