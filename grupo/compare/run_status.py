"""What became of a cell, as its folder says."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.compare.experiment import HELD_OUT, METRICS, Cell
from grupo.core.errors import Refused
from grupo.report.plots import held_out_steps
from grupo.report.read_run import CRASH, Record, crash, metrics, summary
from grupo.storage import strict_json
from grupo.storage.atomic_files import write_atomically
from grupo.storage.lock import Lock
from grupo.training.metrics import mean
from grupo.training.run_dir import LOCK, SUMMARY, Run

FINISHED, CRASHED, RUNNING, CUT_OFF, WAITING, UNREADABLE = (
    "finished",
    "crashed",
    "running",
    "cut off",
    "waiting",
    "unreadable",
)
TO_DO = (WAITING, CUT_OFF)
LOG = "log.txt"
TAIL = 0.1  # of the steps, over which the reward at the end is taken


@dataclass(frozen=True)
class Curve:
    """A number over what had been spent when it was measured."""

    tokens: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """A cell, one word for how it stands, why, and what was measured."""

    cell: Cell
    status: str
    why: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> float:
        """What was measured; NaN where nothing was."""
        return self.numbers.get(metric, math.nan)

    @property
    def strange(self) -> list[str]:
        """Metrics of a finished cell that are no numbers."""
        ended = self.status == FINISHED
        return [name for name, x in self.numbers.items() if ended and not math.isfinite(x)]


def look(cell: Cell) -> Outcome:
    """How a cell stands.

    Raises `Refused` where the folder holds a run of another recipe: the comparison is another one.
    """
    try:
        if _vacant(cell.folder):
            return Outcome(cell, WAITING)
        run = Run.open(cell.folder)
    except Refused as error:
        return Outcome(cell, UNREADABLE, str(error))
    except OSError as error:
        return Outcome(cell, UNREADABLE, _disk(error))
    run.check_same(cell.recipe)
    try:
        return _opened(cell)
    except (Refused, ValueError, KeyError, TypeError, AttributeError) as error:
        return Outcome(cell, UNREADABLE, f"{type(error).__name__}: {error}")
    except OSError as error:
        return Outcome(cell, UNREADABLE, _disk(error))


def crashed(folder: Path, code: int) -> None:
    """Note that the process of a cell ended as it should not."""
    text = {"code": code, "said": _last_line(folder / LOG)}
    write_atomically(folder / CRASH, strict_json.text(text))


def forgive(folder: Path) -> None:
    """Let a crashed cell go on from what it saved."""
    (folder / CRASH).unlink(missing_ok=True)


def _vacant(folder: Path) -> bool:
    """Is there nothing but what a beginning leaves that was killed?"""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return True
    return all(name == LOCK or name.startswith("tmp.") for name in names)


def _opened(cell: Cell) -> Outcome:
    if (cell.folder / SUMMARY).is_file():
        return Outcome(cell, FINISHED, "", *_measured(cell.folder))
    if why := crash(cell.folder):
        return Outcome(cell, CRASHED, why)
    try:
        with Lock(cell.folder / LOCK):
            return Outcome(cell, CUT_OFF)
    except Refused as error:
        return Outcome(cell, RUNNING, str(error))


def _last_line(path: Path) -> str:
    text = path.read_text(errors="replace") if path.is_file() else ""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:500]


def _disk(error: OSError) -> str:
    return f"{error.strerror}: {error.filename}"


def _measured(folder: Path) -> tuple[dict[str, float], dict[str, Curve]]:
    steps, come_to = metrics(folder), summary(folder)
    held_out = list(come_to.get("held_out", {}).values())[-1:]
    last = max(1, round(TAIL * len(steps)))
    found = {
        **{name: float(score[name]) for score in held_out for name in HELD_OUT},
        "reward": mean(_column(steps[-last:], "reward/mean")),
        "signal": mean(_column(steps, "groups/signal")),
        "steps": float(come_to["steps"]),
        "tokens": float(come_to["tokens"]),
        "seconds": sum(_column(steps, "time/step")),
    }
    return {name: found[name] for name in METRICS if name in found}, _curves(steps, come_to)


def _curves(steps: tuple[Mapping[str, float], ...], come_to: Record) -> dict[str, Curve]:
    tokens, seconds = [0.0], [0.0]
    for step in steps:
        tokens.append(tokens[-1] + step["tokens/sampled"])
        seconds.append(seconds[-1] + step["time/step"])
    scores = {k: v for k, v in held_out_steps(come_to).items() if k < len(tokens)}
    every, when = range(1, len(tokens)), sorted(scores)
    curves = {
        "held_out": _at(when, tokens, seconds, [float(scores[k]["sampled"]) for k in when]),
        "reward": _at(every, tokens, seconds, _column(steps, "reward/mean")),
    }
    return {name: curve for name, curve in curves.items() if curve.values}


def _at(steps: Any, tokens: list[float], seconds: list[float], values: list[float]) -> Curve:
    return Curve(tuple(tokens[k] for k in steps), tuple(seconds[k] for k in steps), tuple(values))


def _column(steps: tuple[Mapping[str, float], ...], name: str) -> list[float]:
    return [step.get(name, math.nan) for step in steps]
