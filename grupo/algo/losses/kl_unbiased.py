"""Estimates of KL to another policy whose gradient is that of KL, on policy or off."""

from collections.abc import Callable, Mapping

from torch import Tensor

from grupo.algo import divergences, ratios
from grupo.algo.losses.base import Loss
from grupo.algo.losses.regularizers import KL, Estimate
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece


@piece
class StraightThroughKL(Loss):
    """The value of one estimate of KL(pi, other) and the gradient of another.

    By default the value of k3, which is unbiased and never negative, and the gradient of k2, which
    is the gradient of KL on policy (arXiv:2510.01555).

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0], logp=-1.0, seen={"logp@ref": [[-1.0]]})
    >>> pi = moved(batch, [[0.5]])
    >>> loss = StraightThroughKL()(pi, batch)  # k3 = e^-0.5 + 0.5 - 1, and k2' = 0.5
    >>> loss.sum().backward()
    >>> loss.tolist(), pi.logp.grad.tolist()
    ([[0.10653065971263342]], [[0.5]])
    """

    value: Estimate = divergences.k3
    slope: Estimate = divergences.k2
    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"logp@{self.other}"})

    @property
    def stops_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        other = batch.seen[f"logp@{self.other}"]
        slope = self.slope(pi.logp, other)
        return slope + (self.value(pi.logp, other) - slope).detach()

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return KL(other=self.other).report(pi, batch)


@piece
class CorrectedKL(Loss):
    """r k with r = pi / old: an estimate of KL(pi, other) from actions that `old` drew.

    With k3 its gradient is r (log pi - log other) grad log pi, unbiased off policy too.
    DeepSeek-V3.2, arXiv:2512.02556.

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0], logp=-1.0, seen={"logp@ref": [[-2.0]]})
    >>> CorrectedKL(divergences.k1)(moved(batch, [[0.0]]), batch).tolist()
    [[1.0]]
    """

    estimate: Estimate = divergences.k3
    other: str = "ref"
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {f"logp@{self.other}"}

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        k = self.estimate(pi.logp, batch.seen[f"logp@{self.other}"])
        return self.ratio(pi, batch) * k

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return KL(other=self.other).report(pi, batch)
