"""Estimates of KL to another policy whose gradient is that of KL, on policy or off."""

from collections.abc import Callable, Mapping

from torch import Tensor

from grupo.algo import divergences, ratios
from grupo.algo.losses.base import Loss
from grupo.algo.losses.regularizers import KL, KLEstimator
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class StraightThroughKL(Loss):
    """The value of one estimate of KL(pi, other) and the gradient of another.

    By default the value of k3, which is unbiased and never negative, and the gradient of k2, which
    is the gradient of KL on policy (arXiv:2510.01555).

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-1.0]]})
    >>> pi = moved(batch, [[0.5]])
    >>> loss = StraightThroughKL()(pi, batch)  # k3 = e^-0.5 + 0.5 - 1, and k2' = 0.5
    >>> loss.sum().backward()
    >>> loss.tolist(), pi.logp.grad.tolist()
    ([[0.10653065971263342]], [[0.5]])
    """

    value_estimator: KLEstimator = divergences.k3
    gradient_estimator: KLEstimator = divergences.k2
    other_policy: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({f"logp@{self.other_policy}"})

    @property
    def has_stop_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        other = batch.signals[f"logp@{self.other_policy}"]
        slope = self.gradient_estimator(pi.logp, other)
        return slope + (self.value_estimator(pi.logp, other) - slope).detach()

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return KL(other_policy=self.other_policy).metrics(pi, batch)


@component
class CorrectedKL(Loss):
    """r k with r = pi / old: an estimate of KL(pi, other) from actions that `old` drew.

    With k3 its gradient is r (log pi - log other) grad log pi, unbiased off policy too.
    DeepSeek-V3.2, arXiv:2512.02556.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-2.0]]})
    >>> CorrectedKL(divergences.k1)(moved(batch, [[0.0]]), batch).tolist()
    [[1.0]]
    """

    estimator: KLEstimator = divergences.k3
    other_policy: str = "ref"
    ratio: Callable[[Signals, Batch], Tensor] = ratios.token

    @property
    def required_signals(self) -> frozenset[str]:
        return super().required_signals | {f"logp@{self.other_policy}"}

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        k = self.estimator(pi.logp, batch.signals[f"logp@{self.other_policy}"])
        return self.ratio(pi, batch) * k

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return KL(other_policy=self.other_policy).metrics(pi, batch)
