"""Controllers: numbers computed from the values that one metric had after each earlier step.

A controller can take the place of any number of a method, such as the coefficient of a KL penalty.
The metric `group/reward` has one value per group instead: its mean reward.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import exp, isfinite, log, nan
from typing import Annotated

from annotated_types import Interval

from grupo.core.component import component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.ranges import NonNegativeFloat, PositiveFloat, PositiveInt, Probability
from grupo.core.units import RolloutSteps
from grupo.util.errors import ConfigError, suggest

GROUP_REWARD_METRIC = "group/reward"  # the metric with one value per group
EVERY_STEP = "tokens/generated"  # a metric of every step, by which controllers count the steps


class Controller(DynamicNumber):
    """A number that is computed from a metric's values after each earlier step, oldest first."""

    metric: str  # name of the metric, a field of each controller, where it is read-only

    @abstractmethod
    def next_value(self, metric_values: Sequence[float]) -> float:
        """The number for the next step."""


@component
class LastValue(Controller):
    """The metric's value after the last step; `start` before the first step.

    >>> controller = LastValue("policy/entropy", 1.0)
    >>> controller.next_value([]), controller.next_value([0.9, 0.7])
    (1.0, 0.7)
    """

    metric: str  # pyrefly: ignore[bad-override]
    start: float

    def next_value(self, metric_values: Sequence[float]) -> float:
        return metric_values[-1] if metric_values else self.start


@component
class AdaptiveKL(Controller):
    """A coefficient that grows while the KL is above `target` and falls while it is below.

    b <- b (1 + gain clip(KL / target - 1, -0.2, 0.2)). Ziegler et al., arXiv:1909.08593, section
    2.2. Their KL is that of a whole answer; the metric here is the mean over actions.

    Args:
        start: The coefficient before the first step.
        target: The KL to hold, in nats.
        gain: Largest relative change of the coefficient per step is 0.2 gain; below 5, so that the
            coefficient stays positive.
        metric: The metric to control.

    >>> AdaptiveKL(start=1.0, target=0.1).next_value([0.2]), AdaptiveKL(1.0, 0.1).next_value([0.0])
    (1.02, 0.98)
    """

    start: float
    target: PositiveFloat
    gain: Annotated[float, Interval(gt=0, lt=5)] = 0.1
    metric: str = "policy/kl_ref"  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        coefficient = self.start
        for kl in metric_values:
            error = max(-0.2, min(0.2, kl / self.target - 1))
            coefficient *= 1 + self.gain * error
        return coefficient


@component
class TargetEntropy(Controller):
    """A coefficient that rises after each step with an entropy of at most `target`, else falls.

    It is 0 while the last entropy is above the target. Skywork-OR1, He et al., arXiv:2505.22312,
    section 3.

    Args:
        target: The entropy to hold, in nats.
        step_size: Change of the coefficient per step; the coefficient never falls below 0.
        start: The coefficient before the first step.
        metric: The metric to control.

    >>> TargetEntropy(target=0.2, step_size=0.005).next_value([0.1, 0.1])
    0.01
    """

    target: float
    step_size: NonNegativeFloat
    start: float = 0.0
    metric: str = "policy/entropy"  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        coefficient = self.start
        for entropy in metric_values:
            step = self.step_size if entropy <= self.target else -self.step_size
            coefficient = max(0.0, coefficient + step)
        is_active = not metric_values or metric_values[-1] <= self.target
        return coefficient if is_active else 0.0


@component
class BangBang(Controller):
    """`value_above` if the metric's last value is above `target`, else `value_below`.

    Before the first step it is `value_below`.

    >>> BangBang(0.5, value_below=1.2, value_above=0.8).next_value([0.3])
    1.2
    """

    target: float
    value_below: float
    value_above: float
    metric: str = "policy/entropy"  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        is_above = bool(metric_values) and metric_values[-1] > self.target
        return self.value_above if is_above else self.value_below


@component
class StepSwitch(Controller):
    """`value_before` in the first `steps` rollout steps of a run, then `value_after`.

    Args:
        steps: Number of rollout steps with `value_before`.
        value_before: The number in these steps.
        value_after: The number in all later steps.
        metric: A metric that every step has; its values are counted.

    >>> switch = StepSwitch(2, value_before=0.4, value_after=0.0)
    >>> switch.next_value([9.0]), switch.next_value([9.0, 9.0])
    (0.4, 0.0)
    """

    steps: PositiveInt
    value_before: float
    value_after: float
    metric: str = EVERY_STEP  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        return self.value_before if len(metric_values) < self.steps else self.value_after


@component
class Quantile(Controller):
    """A quantile of the metric's values so far, interpolated between the two nearest values.

    Args:
        metric: The metric.
        fraction: Fraction of the values below the quantile.
        start: The number before there are `min_values` values.
        min_values: Values from which the quantile is computed.

    >>> quartile = Quantile("group/reward", 0.25, start=1.0, min_values=3)
    >>> quartile.next_value([0.5, 0.0]), quartile.next_value([0.5, 0.0, 1.0])
    (1.0, 0.25)
    """

    metric: str  # pyrefly: ignore[bad-override]
    fraction: Probability
    start: float
    min_values: PositiveInt = 1

    def next_value(self, metric_values: Sequence[float]) -> float:
        if len(metric_values) < self.min_values:
            return self.start
        ordered = sorted(metric_values)
        position = self.fraction * (len(ordered) - 1)
        low = int(position)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (position - low) * (ordered[high] - ordered[low])


@component
class ExponentialSum(Controller):
    """The weighted sum of the metric's values; a step has `decay` times the weight of the next one.

    >>> ExponentialSum("rollouts/failed", decay=0.5).next_value([4.0, 1.0])
    3.0
    """

    metric: str  # pyrefly: ignore[bad-override]
    decay: Probability = 0.9

    def next_value(self, metric_values: Sequence[float]) -> float:
        total = 0.0
        for value in metric_values:
            total = self.decay * total + value
        return total


@component
class ExponentialMean(Controller):
    """The running mean m <- decay m + (1 - decay) value, from the metric's first value on.

    Args:
        metric: The metric.
        decay: Weight of the mean so far.
        start: The number before there is a value.

    >>> mean = ExponentialMean("policy/entropy", decay=0.75, start=0.0)
    >>> mean.next_value([]), mean.next_value([1.0, 3.0])
    (0.0, 1.5)
    """

    metric: str  # pyrefly: ignore[bad-override]
    decay: Probability
    start: float

    def next_value(self, metric_values: Sequence[float]) -> float:
        if not metric_values:
            return self.start
        mean = metric_values[0]
        for value in metric_values[1:]:
            mean = self.decay * mean + (1 - self.decay) * value
        return mean


@component
class SmoothedKL(Controller):
    """A coefficient b whose logarithm changes by the mean error of the KL, once per interval.

    The KL has a running mean m <- decay m + (1 - decay) KL, and its error is e = m / target - 1. At
    every `interval`-th value, the error is added to a running mean of the same weight, which begins
    at 0, and log b rises by gain times this mean, clipped to [-0.2, 0.2]. An error with
    |e| < `dead_zone` changes nothing. b stays between 1e-4 and 100. ARES, Chen et al.,
    arXiv:2510.08457, as released.

    Args:
        start: The coefficient before the first change.
        target: The KL to hold, in nats.
        gain: Change of log b for each unit of the mean error.
        decay: Weight of both means so far.
        dead_zone: Relative error below which nothing changes.
        interval: Rollout steps between two changes.
        metric: The metric to control.

    >>> controller = SmoothedKL(interval=1)
    >>> round(controller.next_value([0.02]), 4), controller.next_value([0.0101])
    (1.0015, 1.0)
    """

    start: PositiveFloat = 1.0
    target: PositiveFloat = 0.01
    gain: NonNegativeFloat = 0.05
    decay: Probability = 0.97
    dead_zone: NonNegativeFloat = 0.02
    interval: RolloutSteps = 100
    metric: str = "policy/kl_ref"  # pyrefly: ignore[bad-override]

    def next_value(self, metric_values: Sequence[float]) -> float:
        log_coefficient, mean_error = log(self.start), 0.0
        mean_kl = metric_values[0] if metric_values else self.target
        for i, kl in enumerate(metric_values, 1):
            mean_kl = self.decay * mean_kl + (1 - self.decay) * kl
            error = mean_kl / self.target - 1
            if i % self.interval or abs(error) < self.dead_zone:
                continue
            mean_error = self.decay * mean_error + (1 - self.decay) * error
            log_coefficient += self.gain * max(-0.2, min(0.2, mean_error))
            log_coefficient = max(log(1e-4), min(log(100.0), log_coefficient))
        return exp(log_coefficient)


def controller_values(metrics: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
    """Return the metrics with these names, which controllers read, without NaN and infinite ones.

    A step that trained on no groups has no metrics of updates, such as "loss". Only in a step with
    updates is an absent metric an error.

    Raises:
        ConfigError: The step has no metric of such a name.
    """
    for name in names:
        if name not in metrics and "loss" in metrics:
            message = f"method: a controller reads the metric {name!r}, which does not exist."
            raise ConfigError(f"{message} {suggest(name, metrics)}")
    values = {name: metrics.get(name, nan) for name in sorted(names)}
    return {name: value for name, value in values.items() if isfinite(value)}
