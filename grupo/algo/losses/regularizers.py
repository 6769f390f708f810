"""Regularisers: what keeps a policy near another, or spread out."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo import divergences
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component

KLEstimator = Callable[[Tensor, Tensor], Tensor]


@component
class KL(Loss):
    """An estimate of KL(pi, other): k3 against the reference unless told otherwise.

    GRPO (arXiv:2402.03300), eq. 4.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@teacher": [[-1.5]]})
    >>> KL(divergences.k1, "teacher")(moved(batch, [[0.25]]), batch).tolist()
    [[0.75]]
    """

    estimator: KLEstimator = divergences.k3
    other_policy: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({f"logp@{self.other_policy}"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.estimator(pi.logp, batch.signals[f"logp@{self.other_policy}"])

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {
            f"policy/kl_{self.other_policy}": divergences.k3(
                pi.logp, batch.signals[f"logp@{self.other_policy}"]
            )
        }


@component
class ReverseKL(Loss):
    """KL(pi, other) of each state, exactly: a sum over all that could have been done.

    >>> ReverseKL().live
    frozenset({'reverse_kl@ref'})
    """

    other_policy: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({f"reverse_kl@{self.other_policy}"})

    @property
    def recomputed_signals(self) -> frozenset[str]:
        return self.required_signals

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"reverse_kl@{self.other_policy}"]

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/kl_{self.other_policy}": pi[f"reverse_kl@{self.other_policy}"]}


@component
class ForwardKL(Loss):
    """KL(other, pi) of each state, exactly: it spreads the policy over whatever the other does.

    >>> ForwardKL("teacher").live
    frozenset({'forward_kl@teacher'})
    """

    other_policy: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({f"forward_kl@{self.other_policy}"})

    @property
    def recomputed_signals(self) -> frozenset[str]:
        return self.required_signals

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"forward_kl@{self.other_policy}"]

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/forward_kl_{self.other_policy}": pi[f"forward_kl@{self.other_policy}"]}


@component
class JSD(Loss):
    """The Jensen-Shannon divergence of each state, exactly: the mean KL of both from their mean.

    >>> JSD("teacher").live
    frozenset({'jsd@teacher'})
    """

    other_policy: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({f"jsd@{self.other_policy}"})

    @property
    def recomputed_signals(self) -> frozenset[str]:
        return self.required_signals

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"jsd@{self.other_policy}"]

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"policy/jsd_{self.other_policy}": pi[f"jsd@{self.other_policy}"]}


@component
class Entropy(Loss):
    """The policy's entropy; scale it by a negative number to encourage exploration.

    >>> Entropy().required_signals
    frozenset({'entropy'})
    """

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.entropy


@component
class EntropyBonus(Loss):
    """-`coefficient` H, the coefficient a number that a controller may set.

    >>> from grupo.core.controllers import TargetEntropy
    >>> EntropyBonus(TargetEntropy(target=0.2, step_size=0.005)).required_signals
    frozenset({'entropy'})
    """

    entropy_coef: float

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -self.entropy_coef * pi.entropy

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {"entropy_coef": torch.full_like(pi.entropy, self.entropy_coef)}


@component
class MetricsOnly(Loss):
    """0: it is only reported what the inner loss reports, for controllers to read.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0])
    >>> MetricsOnly(KL())(moved(batch, [[0.5]]), batch).tolist()
    [[0.0]]
    """

    loss: Loss

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.zeros_like(pi.logp)

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.metrics(pi, batch)
