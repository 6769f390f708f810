"""Controllers: numbers that depend on what one metric was after each of the steps so far."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from grupo.core.component import component


@runtime_checkable
class Controller(Protocol):
    """A number that depends on what a metric was after each of the steps so far, oldest first."""

    @property
    def metric(self) -> str: ...

    def next_value(self, metric_values: Sequence[float], /) -> float: ...


@component
class LastValue:
    """What the metric `reads` was after the last step; `start` before the first.

    >>> LastValue("entropy", 1.0).follow([]), LastValue("entropy", 1.0).follow([0.9, 0.7])
    (1.0, 0.7)
    """

    metric: str
    start: float

    def next_value(self, metric_values: Sequence[float]) -> float:
        return metric_values[-1] if metric_values else self.start


@component
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
    metric: str = "policy/kl_ref"

    def next_value(self, metric_values: Sequence[float]) -> float:
        coefficient = self.start
        for kl in metric_values:
            off = max(-0.2, min(0.2, kl / self.target - 1))
            coefficient *= 1 + self.gain * off
        return coefficient


@component
class TargetEntropy:
    """A coefficient that a step below `target` raises by `by`, a step above lowers, never below 0.

    It acts only while the entropy is not above the target: then it is 0. Skywork-OR1, He et al.,
    arXiv:2505.22312, section 3.

    >>> TargetEntropy(target=0.2, step_size=0.005).follow([0.1, 0.1])
    0.01
    """

    target: float
    step_size: float
    start: float = 0.0
    metric: str = "entropy"

    def next_value(self, metric_values: Sequence[float]) -> float:
        coefficient = self.start
        for entropy in metric_values:
            step = self.step_size if entropy <= self.target else -self.step_size
            coefficient = max(0.0, coefficient + step)
        acts = not metric_values or metric_values[-1] <= self.target
        return coefficient if acts else 0.0


@component
class BangBang:
    """`below` while the metric was last at most `target`, or never was; `above` while it is above.

    >>> BangBang(0.5, value_below=1.2, value_above=0.8).follow([0.3])
    1.2
    """

    target: float
    value_below: float
    value_above: float
    metric: str = "entropy"

    def next_value(self, metric_values: Sequence[float]) -> float:
        return (
            self.value_above
            if metric_values and metric_values[-1] > self.target
            else self.value_below
        )


@component
class ExponentialSum:
    """The sum of what the metric was after each step, every step counting `keep` times the next.

    >>> ExponentialSum("rollouts/failed", decay=0.5).follow([4.0, 1.0])
    3.0
    """

    metric: str
    decay: float = 0.9

    def next_value(self, metric_values: Sequence[float]) -> float:
        total = 0.0
        for number in metric_values:
            total = self.decay * total + number
        return total
