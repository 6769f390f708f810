"""Reading a run's folder from outside, while it is being written or after it was cut off."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grupo.errors import Refused
from grupo.storage import plain

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Series:
    """A metric over the steps at which it is a finite number."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def first(self, count: int) -> "Series":
        """Its first so many points."""
        return Series(self.steps[:count], self.values[:count])

    def last(self, count: int) -> "Series":
        """Its last so many points."""
        return Series(self.steps[-count:], self.values[-count:])

    @property
    def mean(self) -> float:
        """The mean; NaN of nothing."""
        return sum(self.values) / len(self.values) if self.values else math.nan


def check(folder: Path) -> Path:
    """The folder, if it holds a run; refuses any other."""
    if not (folder / "recipe.json").is_file():
        raise Refused(f"run: {str(folder)!r} holds no run: it has no recipe.json.")
    return folder


def records(path: Path) -> Iterator[Record]:
    """A journal's records one by one, none of them kept; a torn last line is left out.

    Raises `Refused` with the number of any other line that cannot be read.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield plain.read(line.decode())
            except ValueError as error:
                if not file.read(1):
                    return
                raise Refused(f"{path}, line {number}, cannot be read: {error}.") from error


def metrics(folder: Path) -> tuple[Mapping[str, float], ...]:
    """The metrics of every step, as numbers; "NaN" is read as NaN."""
    lines = records(folder / "metrics.jsonl")
    return tuple({name: float(value) for name, value in line.items()} for line in lines)


def series(steps: tuple[Mapping[str, float], ...], name: str) -> Series:
    """One metric over the steps that have it.

    >>> series(({"step": 0, "loss": 0.5}, {"step": 1}, {"step": 2, "loss": 0.25}), "loss")
    Series(steps=(0, 2), values=(0.5, 0.25))
    """
    found = [(int(m["step"]), m[name]) for m in steps if math.isfinite(m.get(name, math.nan))]
    return Series(tuple(step for step, _ in found), tuple(value for _, value in found))


def summary(folder: Path) -> Record:
    """What the run came to; empty while it has not ended."""
    path = folder / "summary.json"
    return plain.read(path.read_text()) if path.exists() else {}
