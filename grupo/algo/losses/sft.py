"""Imitation: learning from what somebody else said, alone or beside one's own rollouts."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo.data_source import REQUIRES_SAMPLED, sampled_mask
from grupo.algo.losses.base import Loss
from grupo.algo.token_level import row_mean
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component


@component
class NLL(Loss):
    """-log pi: supervised learning of whatever the rows hold.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], logp=-2.0)
    >>> NLL()(moved(batch, [[0.5]]), batch).tolist()
    [[1.5]]
    """

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -pi.logp


@component
class MixSFT(Loss):
    """(1 - `share`) own where the policy drew the action, `share` theirs where it did not.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[3.0, 0.0], signals={"sampled": [[1.0], [0.0]]})
    >>> MixSFT(0.25, Reinforce(), NLL())(moved(batch, [[0.0], [0.0]]), batch).tolist()
    [[2.25], [0.25]]
    """

    sft_weight: float
    policy_loss: Loss
    demo_loss: Loss

    @property
    def required_signals(self) -> frozenset[str]:
        return super().required_signals | REQUIRES_SAMPLED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        own, theirs = self.policy_loss(pi, batch), self.demo_loss(pi, batch)
        return torch.where(
            sampled_mask(batch), (1 - self.sft_weight) * own, self.sft_weight * theirs
        )

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        mixed = {"sft_weight": torch.full_like(pi.logp, self.sft_weight)}
        return {**self.policy_loss.metrics(pi, batch), **self.demo_loss.metrics(pi, batch), **mixed}


@component
class SelectBySource(Loss):
    """`own` where the policy drew the action, `theirs` where it did not.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[3.0, 0.0], signals={"sampled": [[1.0], [0.0]]})
    >>> SelectBySource(Reinforce(), NLL())(moved(batch, [[0.0], [0.0]]), batch).tolist()
    [[3.0], [1.0]]
    """

    policy_loss: Loss
    demo_loss: Loss

    @property
    def required_signals(self) -> frozenset[str]:
        return super().required_signals | REQUIRES_SAMPLED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.where(
            sampled_mask(batch), self.policy_loss(pi, batch), self.demo_loss(pi, batch)
        )

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.policy_loss.metrics(pi, batch), **self.demo_loss.metrics(pi, batch)}


@component
class EntropyWeightedMix(Loss):
    """Both sources weighed by the mean entropy H of the row, a constant. SRFT, arXiv:2506.19767.

    own:    -`reward` e^H log pi where A > 0, log pi where A < 0
    theirs: -`sft_coef` e^-H log pi - A pi

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, 0.0], signals={"sampled": [[1.0], [0.0]]})
    >>> pi = moved(batch, [[0.0], [0.0]])
    >>> pi["entropy"] = torch.zeros(2, 1)
    >>> EntropyWeightedMix(sft_coef=0.5, rl_coef=0.25)(pi, batch).tolist()
    [[0.25], [0.5]]
    """

    sft_coef: float
    rl_coef: float

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy"}) | REQUIRES_SAMPLED

    @property
    def recomputed_signals(self) -> frozenset[str]:
        return frozenset({"entropy"})

    @property
    def has_stop_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        H, A = row_mean(pi.entropy.detach(), batch), batch.advantage
        own = -torch.where(A > 0, self.rl_coef * H.exp(), 1.0) * A * pi.logp
        theirs = -self.sft_coef * (-H).exp() * pi.logp - A * pi.logp.exp()
        return torch.where(sampled_mask(batch), own, theirs)
