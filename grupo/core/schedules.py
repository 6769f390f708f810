"""Numbers that change while a run goes: functions of its progress, or of what was measured.

A schedule depends on progress, 0 at the first step and 1 after the last; a controller on the past
values of one metric. Any number of any piece may be either. Pieces never know: before each step
`at` puts numbers in their place.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

from grupo.core.component import component, component_fields, is_component
from grupo.core.controllers import Controller


@runtime_checkable
class Schedule(Protocol):
    """A number that depends on how far the run is."""

    def value(self, progress: float, /) -> float: ...


@component
class Linear:
    """From `start` to `end` in a straight line.

    >>> Linear(1.0, 0.0).value(0.25)
    0.75
    """

    start: float
    end: float

    def value(self, progress: float) -> float:
        return self.start + (self.end - self.start) * progress


@component
class Cosine:
    """From `start` to `end` along half a cosine: end + (start - end) (1 + cos(pi progress)) / 2.

    >>> Cosine(1.0, 0.0).value(0.5)
    0.5
    """

    start: float
    end: float = 0.0

    def value(self, progress: float) -> float:
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * progress)) / 2


@component
class Exponential:
    """`start` exp(-rate progress): from `start`, by the same factor in every step.

    >>> round(Exponential(1.0).value(1.0), 4)
    0.3679
    """

    start: float
    rate: float = 1.0

    def value(self, progress: float) -> float:
        return self.start * math.exp(-self.rate * progress)


@component
class Warmup:
    """From 0 to the inner number over the first `share` of the run.

    >>> Warmup(0.1, 2.0).value(0.05), Warmup(0.1, Linear(2.0, 0.0)).value(0.5)
    (1.0, 1.0)
    """

    fraction: float
    schedule: float | Schedule

    def value(self, progress: float) -> float:
        top = (
            self.schedule.value(progress) if isinstance(self.schedule, Schedule) else self.schedule
        )
        return top * min(1.0, progress / self.fraction)


@component
class Switch:
    """`before` until the share `at` of the run is over, `after` from then on.

    >>> Switch(0.25, 0.0, 12.0).value(0.2), Switch(0.25, 0.0, 12.0).value(0.25)
    (0.0, 12.0)
    """

    switch_at: float
    value_before: float
    value_after: float

    def value(self, progress: float) -> float:
        return self.value_before if progress < self.switch_at else self.value_after


def as_float(schedule: Schedule | Controller) -> float:
    """A number that changes, where a type says that a number is wanted: the same object."""
    return cast(float, schedule)


MetricHistory = Mapping[str, Sequence[float]]  # metrics that controllers read, by step


def resolve_schedules(value: Any, progress: float, metric_values: MetricHistory = {}) -> Any:  # noqa: B006, never written
    """The same value with every schedule and controller inside replaced by its number.

    >>> from grupo.algo.losses import Clip
    >>> resolve_schedules(Clip(clip_low=0.2, clip_high=Linear(0.25, 0.75)), 0.5)
    Clip(clip_low=0.2, clip_high=0.5)
    """
    if isinstance(value, Schedule):
        return value.value(progress)
    if isinstance(value, Controller):
        return value.next_value(metric_values.get(value.metric, ()))
    if type(value) is tuple:
        now = tuple(resolve_schedules(v, progress, metric_values) for v in value)
        return value if all(a is b for a, b in zip(now, value, strict=True)) else now
    if is_component(value):
        old = component_fields(value)
        new = {name: resolve_schedules(part, progress, metric_values) for name, part in old.items()}
        return value if all(new[k] is old[k] for k in old) else replace(value, **new)
    return value
