"""Regularisers: what keeps a policy near another, or spread out."""

from collections.abc import Callable, Mapping

from torch import Tensor

from grupo import divergences
from grupo.batch import Batch, PerAction, Signals
from grupo.losses.base import Loss
from grupo.piece import piece


@piece
class KL(Loss):
    """An estimate of KL(pi, other): k3 against the reference unless told otherwise.

    GRPO (arXiv:2402.03300), eq. 4.
    """

    estimate: Callable[[Tensor, Tensor], Tensor] = divergences.k3
    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({f"logp@{self.other}"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return self.estimate(pi.logp, batch.seen[f"logp@{self.other}"])

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {f"kl/{self.other}": divergences.k3(pi.logp, batch.seen[f"logp@{self.other}"])}


@piece
class Entropy(Loss):
    """The policy's entropy; scale it by a negative number to encourage exploration."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"})

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.entropy
