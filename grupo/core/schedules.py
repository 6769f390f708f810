"""Schedules: numbers that change with the progress of a run.

Progress is 0 at the first step and 1 after the last. A number that depends on a metric instead is a
controller (`grupo.core.controllers`). A field of type `grupo.core.numbers.NumberOrSchedule` takes
either; `resolve_schedules` puts plain numbers in their place before each step.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grupo.core.component import component, component_fields, is_component
from grupo.core.controllers import Controller
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.ranges import (
    FractionBelowOne,
    PositiveFloat,
    PositiveInt,
    PositiveProbability,
    Probability,
)


class Schedule(DynamicNumber):
    """A number that depends on the progress of the run, 0 to 1."""

    @abstractmethod
    def value(self, progress: float) -> float:
        """The number at that progress."""


@component
class Linear(Schedule):
    """Linear from `start` to `end`.

    >>> Linear(1.0, 0.0).value(0.25)
    0.75
    """

    start: float
    end: float

    def value(self, progress: float) -> float:
        return self.start + (self.end - self.start) * progress


@component
class Cosine(Schedule):
    """Half a cosine from `start` to `end`: end + (start - end) (1 + cos(pi progress)) / 2.

    >>> Cosine(1.0, 0.0).value(0.5)
    0.5
    """

    start: float
    end: float = 0.0

    def value(self, progress: float) -> float:
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * progress)) / 2


@component
class Exponential(Schedule):
    """Exponential decay: start exp(-rate progress).

    >>> round(Exponential(1.0).value(1.0), 4)
    0.3679
    """

    start: float
    rate: float = 1.0

    def value(self, progress: float) -> float:
        return self.start * math.exp(-self.rate * progress)


@component
class Warmup(Schedule):
    """Linear warm-up from 0 over the first `fraction` of the run, then `schedule`.

    Args:
        fraction: Fraction of the run, above 0 and at most 1.
        schedule: A number or a schedule; the warm-up multiplies it.

    >>> Warmup(0.1, 2.0).value(0.05), Warmup(0.1, Linear(2.0, 0.0)).value(0.5)
    (1.0, 1.0)
    """

    fraction: PositiveProbability
    schedule: float | Schedule

    def value(self, progress: float) -> float:
        schedule = self.schedule
        target = schedule.value(progress) if isinstance(schedule, Schedule) else schedule
        return target * min(1.0, progress / self.fraction)


@component
class Switch(Schedule):
    """`value_before` until the progress `switch_at`, then `value_after`.

    >>> Switch(0.25, 0.0, 12.0).value(0.2), Switch(0.25, 0.0, 12.0).value(0.25)
    (0.0, 12.0)
    """

    switch_at: Probability
    value_before: float
    value_after: float

    def value(self, progress: float) -> float:
        return self.value_before if progress < self.switch_at else self.value_after


@component
class CosineRestarts(Schedule):
    """A line from `initial` to `start`, then `cycles` times half a cosine from `start` to `end`.

    Args:
        initial: Value at the beginning of the run.
        start: Value at the beginning of each cycle.
        end: Value at the end of each cycle.
        cycles: Number of cycles, all of one length.
        warmup_fraction: Fraction of the run before the first cycle, below 1.

    >>> schedule = CosineRestarts(1.0, 0.5, 0.75, cycles=2, warmup_fraction=0.2)
    >>> [round(schedule.value(p), 3) for p in (0.0, 0.1, 0.2, 0.4, 0.8, 1.0)]
    [1.0, 0.75, 0.5, 0.625, 0.625, 0.75]
    """

    initial: float
    start: float
    end: float
    cycles: PositiveInt = 3
    warmup_fraction: FractionBelowOne = 0.2

    def value(self, progress: float) -> float:
        if progress < self.warmup_fraction:
            return Linear(self.initial, self.start).value(progress / self.warmup_fraction)
        position = self.cycles * (progress - self.warmup_fraction) / (1 - self.warmup_fraction)
        cycle = min(int(position), self.cycles - 1)
        return Cosine(self.start, self.end).value(position - cycle)


@component
class LinearSteps(Schedule):
    """Constant on `drops` + 1 equal parts of the run, from `start` to `end` in equal differences.

    Args:
        start: Value in the first part.
        end: Value in the last part.
        drops: Number of changes.

    >>> [LinearSteps(256, 87, drops=1).value(p) for p in (0.0, 0.49, 0.5, 1.0)]
    [256.0, 256.0, 87.0, 87.0]
    """

    start: float
    end: float
    drops: PositiveInt = 3

    def value(self, progress: float) -> float:
        return Linear(self.start, self.end).value(_finished_steps(progress, self.drops))


@component
class GeometricSteps(Schedule):
    """Constant on `drops` + 1 equal parts of the run, from `start` to `end` in equal ratios.

    Args:
        start: Value in the first part, above 0.
        end: Value in the last part, above 0.
        drops: Number of changes.

    >>> [round(GeometricSteps(256, 87).value(p)) for p in (0.0, 0.25, 0.5, 1.0)]
    [256, 179, 125, 87]
    """

    start: PositiveFloat
    end: PositiveFloat
    drops: PositiveInt = 3

    def value(self, progress: float) -> float:
        share = _finished_steps(progress, self.drops)
        return self.start * (self.end / self.start) ** share


def _finished_steps(progress: float, drops: int) -> float:
    """Drops before this progress, as a share of all."""
    return min(int(progress * (drops + 1) + 1e-9), drops) / drops


MetricHistory = Mapping[str, Sequence[float]]  # values of each metric, by step or by group


def resolve_schedules(value: Any, progress: float, metric_values: MetricHistory = {}) -> Any:  # noqa: B006, never written
    """The same value with every schedule and controller inside replaced by its number.

    Args:
        value: A component, a tuple, or anything else.
        progress: Progress of the run, 0 to 1, for schedules.
        metric_values: Values of each metric by step, or by group, oldest first, for controllers.

    >>> from grupo.algo.losses import Clip
    >>> resolve_schedules(Clip(clip_low=0.2, clip_high=Linear(0.25, 0.75)), 0.5)
    Clip(clip_low=0.2, clip_high=0.5)
    """
    if isinstance(value, Schedule):
        return value.value(progress)
    if isinstance(value, Controller):
        return value.next_value(metric_values.get(value.metric, ()))
    if type(value) is tuple:
        resolved = tuple(resolve_schedules(v, progress, metric_values) for v in value)
        unchanged = all(a is b for a, b in zip(resolved, value, strict=True))
        return value if unchanged else resolved
    if is_component(value):
        old = component_fields(value)
        new = {name: resolve_schedules(v, progress, metric_values) for name, v in old.items()}
        return value if all(new[k] is old[k] for k in old) else replace(value, **new)
    return value
