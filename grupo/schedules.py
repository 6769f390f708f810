"""Schedules: numbers that are functions of a run's progress, 0 at its first step and 1 after its
last.

Any number of any piece may be a schedule. Pieces never know: before each step `at` puts numbers in
their place.
"""

import math
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from grupo.piece import is_piece, parts, piece


@runtime_checkable
class Schedule(Protocol):
    """A number that depends on how far the run is."""

    def value(self, progress: float, /) -> float: ...


@piece
class Linear:
    """From `start` to `end` in a straight line.

    >>> Linear(1.0, 0.0).value(0.25)
    0.75
    """

    start: float
    end: float

    def value(self, progress: float) -> float:
        return self.start + (self.end - self.start) * progress


@piece
class Cosine:
    """From `start` to `end` along half a cosine: end + (start - end) (1 + cos(pi progress)) / 2.

    >>> Cosine(1.0, 0.0).value(0.5)
    0.5
    """

    start: float
    end: float = 0.0

    def value(self, progress: float) -> float:
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * progress)) / 2


@piece
class Warmup:
    """From 0 to the inner number over the first `share` of the run.

    >>> Warmup(0.1, 2.0).value(0.05), Warmup(0.1, Linear(2.0, 0.0)).value(0.5)
    (1.0, 1.0)
    """

    share: float
    then: float | Schedule

    def value(self, progress: float) -> float:
        top = self.then.value(progress) if isinstance(self.then, Schedule) else self.then
        return top * min(1.0, progress / self.share)


def at(value: Any, progress: float) -> Any:
    """The same value with every schedule inside it replaced by its number at `progress`.

    >>> from grupo.losses import Clip
    >>> at(Clip(low=0.2, high=Linear(0.25, 0.75)), 0.5)
    Clip(low=0.2, high=0.5)
    """
    if isinstance(value, Schedule):
        return value.value(progress)
    if type(value) is tuple:
        now = tuple(at(v, progress) for v in value)
        return value if all(a is b for a, b in zip(now, value, strict=True)) else now
    if is_piece(value):
        old = parts(value)
        new = {name: at(part, progress) for name, part in old.items()}
        return value if all(new[k] is old[k] for k in old) else replace(value, **new)
    return value
