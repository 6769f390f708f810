"""Imitation: learning from what somebody else said, alone or beside one's own rollouts."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo.data_source import SAMPLED, drawn
from grupo.algo.losses.base import Loss
from grupo.algo.token_level import by_mean
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import piece


@piece
class Likelihood(Loss):
    """-log pi: supervised learning of whatever the rows hold.

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0], logp=-2.0)
    >>> Likelihood()(moved(batch, [[0.5]]), batch).tolist()
    [[1.5]]
    """

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -pi.logp


@piece
class Blend(Loss):
    """(1 - `share`) own where the policy drew the action, `share` theirs where it did not.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0, 0], advantage=[3.0, 0.0], seen={"sampled": [[1.0], [0.0]]})
    >>> Blend(0.25, Reinforce(), Likelihood())(moved(batch, [[0.0], [0.0]]), batch).tolist()
    [[2.25], [0.25]]
    """

    share: float
    own: Loss
    theirs: Loss

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | SAMPLED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        own, theirs = self.own(pi, batch), self.theirs(pi, batch)
        return torch.where(drawn(batch), (1 - self.share) * own, self.share * theirs)

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        mixed = {"imitation/share": torch.full_like(pi.logp, self.share)}
        return {**self.own.report(pi, batch), **self.theirs.report(pi, batch), **mixed}


@piece
class BySource(Loss):
    """`own` where the policy drew the action, `theirs` where it did not.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0, 0], advantage=[3.0, 0.0], seen={"sampled": [[1.0], [0.0]]})
    >>> BySource(Reinforce(), Likelihood())(moved(batch, [[0.0], [0.0]]), batch).tolist()
    [[3.0], [1.0]]
    """

    own: Loss
    theirs: Loss

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | SAMPLED

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.where(drawn(batch), self.own(pi, batch), self.theirs(pi, batch))

    def report(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {**self.own.report(pi, batch), **self.theirs.report(pi, batch)}


@piece
class ByRowEntropy(Loss):
    """Both sources weighed by the mean entropy H of the row, a constant. SRFT, arXiv:2506.19767.

    own:    -`reward` e^H log pi where A > 0, log pi where A < 0
    theirs: -`imitate` e^-H log pi - A pi

    >>> from grupo.testing.batches import batch_of, moved
    >>> batch = batch_of(group=[0, 0], advantage=[1.0, 0.0], seen={"sampled": [[1.0], [0.0]]})
    >>> pi = moved(batch, [[0.0], [0.0]])
    >>> pi["entropy"] = torch.zeros(2, 1)
    >>> ByRowEntropy(imitate=0.5, reward=0.25)(pi, batch).tolist()
    [[0.25], [0.5]]
    """

    imitate: float
    reward: float

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"entropy"}) | SAMPLED

    @property
    def live(self) -> frozenset[str]:
        return frozenset({"entropy"})

    @property
    def stops_gradient(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        H, A = by_mean(pi.entropy.detach(), batch), batch.advantage
        own = -torch.where(A > 0, self.reward * H.exp(), 1.0) * A * pi.logp
        theirs = -self.imitate * (-H).exp() * pi.logp - A * pi.logp.exp()
        return torch.where(drawn(batch), own, theirs)
