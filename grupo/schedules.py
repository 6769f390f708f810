"""Numbers that change while a run goes: functions of its progress, or of what was measured.

A schedule depends on progress, 0 at the first step and 1 after the last; a controller on the past
values of one metric. Any number of any piece may be either. Pieces never know: before each step
`at` puts numbers in their place.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

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


@runtime_checkable
class Controller(Protocol):
    """A number that depends on what a metric was after each of the steps so far, oldest first."""

    @property
    def reads(self) -> str: ...

    def follow(self, measured: Sequence[float], /) -> float: ...


@piece
class Last:
    """What the metric `reads` was after the last step; `start` before the first.

    >>> Last("entropy", 1.0).follow([]), Last("entropy", 1.0).follow([0.9, 0.7])
    (1.0, 0.7)
    """

    reads: str
    start: float

    def follow(self, measured: Sequence[float]) -> float:
        return measured[-1] if measured else self.start


@piece
class AdaptiveKL:
    """A coefficient that grows while the KL is above `target` and falls while it is below.

    b <- b (1 + gain clip(KL / target - 1, -0.2, 0.2)). Ziegler et al., arXiv:1909.08593, section
    2.2; their KL is of a whole answer, the metric here the mean over its actions.

    >>> AdaptiveKL(start=1.0, target=0.1).follow([0.2]), AdaptiveKL(1.0, 0.1).follow([0.0])
    (1.02, 0.98)
    """

    start: float
    target: float
    gain: float = 0.1
    reads: str = "kl/ref"

    def follow(self, measured: Sequence[float]) -> float:
        coefficient = self.start
        for kl in measured:
            off = max(-0.2, min(0.2, kl / self.target - 1))
            coefficient *= 1 + self.gain * off
        return coefficient


@piece
class TargetEntropy:
    """A coefficient that a step below `target` raises by `by`, a step above lowers, never below 0.

    It acts only while the entropy is not above the target: then it is 0. Skywork-OR1, He et al.,
    arXiv:2505.22312, section 3.

    >>> TargetEntropy(target=0.2, by=0.005).follow([0.1, 0.1])
    0.01
    """

    target: float
    by: float
    start: float = 0.0
    reads: str = "entropy"

    def follow(self, measured: Sequence[float]) -> float:
        coefficient = self.start
        for entropy in measured:
            step = self.by if entropy <= self.target else -self.by
            coefficient = max(0.0, coefficient + step)
        acts = not measured or measured[-1] <= self.target
        return coefficient if acts else 0.0


@piece
class Thermostat:
    """`below` while the metric was last at most `target`, or never was; `above` while it is above.

    >>> Thermostat(0.5, below=1.2, above=0.8).follow([0.3])
    1.2
    """

    target: float
    below: float
    above: float
    reads: str = "entropy"

    def follow(self, measured: Sequence[float]) -> float:
        return self.above if measured and measured[-1] > self.target else self.below


def varying(change: Schedule | Controller) -> float:
    """A number that changes, where a type says that a number is wanted: the same object."""
    return cast(float, change)


Measured = Mapping[str, Sequence[float]]  # metrics that controllers read, by step


def at(value: Any, progress: float, measured: Measured = {}) -> Any:  # noqa: B006, never written
    """The same value with every schedule and controller inside replaced by its number.

    >>> from grupo.losses import Clip
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
