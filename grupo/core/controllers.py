"""Controllers: numbers that depend on what one metric was after each of the steps so far."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from grupo.core.component import piece


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


@piece
class Faded:
    """The sum of what the metric was after each step, every step counting `keep` times the next.

    >>> Faded("rollouts/failed", keep=0.5).follow([4.0, 1.0])
    3.0
    """

    reads: str
    keep: float = 0.9

    def follow(self, measured: Sequence[float]) -> float:
        total = 0.0
        for number in measured:
            total = self.keep * total + number
        return total
