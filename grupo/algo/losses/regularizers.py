"""Regularisers: what keeps a policy near another, or spread out."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo import divergences
from grupo.algo.losses.base import Loss
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece

Estimate = Callable[[Tensor, Tensor], Tensor]


@piece
class KL(Loss):
    """An estimate of KL(pi, other): k3 against the reference unless told otherwise.

    GRPO (arXiv:2402.03300), eq. 4.

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0], logp=-1.0, seen={"logp@teacher": [[-1.5]]})
    >>> KL(divergences.k1, "teacher")(moved(batch, [[0.25]]), batch).tolist()
    [[0.75]]
    """

    estimate: Estimate = divergences.k3
    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"logp@{self.other}"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.estimate(pi.logp, batch.seen[f"logp@{self.other}"])

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"kl/{self.other}": divergences.k3(pi.logp, batch.seen[f"logp@{self.other}"])}


@piece
class ReverseKL(Loss):
    """KL(pi, other) of each state, exactly: a sum over all that could have been done.

    >>> ReverseKL().live
    frozenset({'reverse_kl@ref'})
    """

    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"reverse_kl@{self.other}"})

    @property
    def live(self) -> frozenset[str]:
        return self.needs

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"reverse_kl@{self.other}"]

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"kl/{self.other}": pi[f"reverse_kl@{self.other}"]}


@piece
class ForwardKL(Loss):
    """KL(other, pi) of each state, exactly: it spreads the policy over whatever the other does.

    >>> ForwardKL("teacher").live
    frozenset({'forward_kl@teacher'})
    """

    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"forward_kl@{self.other}"})

    @property
    def live(self) -> frozenset[str]:
        return self.needs

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"forward_kl@{self.other}"]

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"forward_kl/{self.other}": pi[f"forward_kl@{self.other}"]}


@piece
class JSD(Loss):
    """The Jensen-Shannon divergence of each state, exactly: the mean KL of both from their mean.

    >>> JSD("teacher").live
    frozenset({'jsd@teacher'})
    """

    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"jsd@{self.other}"})

    @property
    def live(self) -> frozenset[str]:
        return self.needs

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi[f"jsd@{self.other}"]

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"jsd/{self.other}": pi[f"jsd@{self.other}"]}


@piece
class Entropy(Loss):
    """The policy's entropy; scale it by a negative number to encourage exploration.

    >>> Entropy().needs
    frozenset({'entropy'})
    """

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.entropy


@piece
class EntropyBonus(Loss):
    """-`coefficient` H, the coefficient a number that a controller may set.

    >>> from grupo.core.controllers import TargetEntropy
    >>> EntropyBonus(TargetEntropy(target=0.2, by=0.005)).needs
    frozenset({'entropy'})
    """

    coefficient: float

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -self.coefficient * pi.entropy

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {"entropy/coefficient": torch.full_like(pi.entropy, self.coefficient)}


@piece
class Watched(Loss):
    """0: it is only reported what the inner loss reports, for controllers to read.

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0])
    >>> Watched(KL())(moved(batch, [[0.5]]), batch).tolist()
    [[0.0]]
    """

    loss: Loss

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.zeros_like(pi.logp)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return self.loss.report(pi, batch)
