"""Numbers that change while a run goes: functions of its progress, or of what was measured.

A schedule depends on progress, 0 at the first step and 1 after the last; a controller on the past
values of one metric. Any number of any piece may be either. Pieces never know: before each step
`at` puts numbers in their place.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

from grupo.core.component import is_piece, parts, piece
from grupo.core.controllers import Controller


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
class Exponential:
    """`start` exp(-rate progress): from `start`, by the same factor in every step.

    >>> round(Exponential(1.0).value(1.0), 4)
    0.3679
    """

    start: float
    rate: float = 1.0

    def value(self, progress: float) -> float:
        return self.start * math.exp(-self.rate * progress)


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


@piece
class Switch:
    """`before` until the share `at` of the run is over, `after` from then on.

    >>> Switch(0.25, 0.0, 12.0).value(0.2), Switch(0.25, 0.0, 12.0).value(0.25)
    (0.0, 12.0)
    """

    at: float
    before: float
    after: float

    def value(self, progress: float) -> float:
        return self.before if progress < self.at else self.after


def varying(change: Schedule | Controller) -> float:
    """A number that changes, where a type says that a number is wanted: the same object."""
    return cast(float, change)


Measured = Mapping[str, Sequence[float]]  # metrics that controllers read, by step


def at(value: Any, progress: float, measured: Measured = {}) -> Any:  # noqa: B006, never written
    """The same value with every schedule and controller inside replaced by its number.

    >>> from grupo.algo.losses import Clip
    >>> at(Clip(low=0.2, high=Linear(0.25, 0.75)), 0.5)
    Clip(low=0.2, high=0.5)
    """
    if isinstance(value, Schedule):
        return value.value(progress)
    if isinstance(value, Controller):
        return value.follow(measured.get(value.reads, ()))
    if type(value) is tuple:
        now = tuple(at(v, progress, measured) for v in value)
        return value if all(a is b for a, b in zip(now, value, strict=True)) else now
    if is_piece(value):
        old = parts(value)
        new = {name: at(part, progress, measured) for name, part in old.items()}
        return value if all(new[k] is old[k] for k in old) else replace(value, **new)
    return value
