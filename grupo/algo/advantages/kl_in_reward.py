"""Other policies in the credit: what is paid for being unlike one, or gained for being like one.

What is paid is log pi_old - log pi_other of the actions that were taken, in nats (k1): unbiased, a
constant of the update, and credited like any reward.
"""

import torch
from torch import Tensor

from grupo.algo.divergences import k1
from grupo.core.batch import Batch, PerAction, spread
from grupo.core.component import piece


@piece
class _Paid:
    """At what price, and for being unlike whom."""

    coefficient: float
    other: str = "ref"

    @property
    def needs(self) -> frozenset[str]:
        """What the other said of the actions."""
        return frozenset({f"logp@{self.other}"})


@piece
class KLInReward(_Paid):
    """x - `coefficient` sum over the rollout's actions of k1, (R,): before a baseline is taken.

    Ziegler et al., arXiv:1909.08593.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[2], logp=-1.0, seen={"logp@ref": [[-1.5, -3.0]]})
    >>> KLInReward(0.2)(torch.tensor([1.0]), batch)
    tensor([0.5000])
    """

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        paid = _paid(batch, self.other).sum(1).to(x)
        return x - self.coefficient * torch.zeros_like(x).index_add(0, batch.rollout, paid)


@piece
class KLPerAction(_Paid):
    """x_t - `coefficient` k1_t, (N, T): every action pays for itself alone.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[2], logp=-1.0, seen={"logp@ref": [[-1.5, -3.0]]})
    >>> KLPerAction(0.5)(torch.tensor([1.0]), batch)
    tensor([[0.7500, 0.0000]])
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        return spread(x, batch) - self.coefficient * _paid(batch, self.other).to(x)


@piece
class KLToGo(_Paid):
    """x_t - `coefficient` sum_{s >= t} k1_s, (N, T): an action pays for what follows in its row.

    Another row of the same rollout has another context; its actions are its own to pay for.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of(group=[0], length=[2], logp=-1.0, seen={"logp@ref": [[-1.5, -3.0]]})
    >>> KLToGo(0.5)(torch.tensor([1.0]), batch)
    tensor([[-0.2500,  0.0000]])
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        later = _paid(batch, self.other).flip(1).cumsum(1).flip(1) * batch.mask
        return spread(x, batch) - self.coefficient * later.to(x)


@piece
class Tempered:
    """(1 - a) x + a b rho, b 1 where right, rho = pi_old at another temperature / pi_old.

    The temperature is 1.2 times its own while `entropy` is at most `target`, 0.8 times above.
    a' = min(|target - entropy|, `most`) / (share that is right), a = a' / (1 + a'). DCPO, Li et
    al., arXiv:2601.12730.

    >>> from grupo.testing.batches import batch_of
    >>> seen = {"logp@t=1.2": [[-1.0], [-1.0]], "logp@t=0.8": [[0.0], [0.0]]}
    >>> batch = batch_of([0, 0], logp=-1.0, parts={"correct": [1.0, 1.0]}, seen=seen)
    >>> Tempered(entropy=0.0, target=1.0, most=1.0)(torch.tensor([3.0, -1.0]), batch)  # a = 1/2
    tensor([[2.],
            [0.]])
    """

    entropy: float
    target: float
    most: float = 0.1
    above: float = 0.05
    part: str = "correct"

    @property
    def needs(self) -> frozenset[str]:
        """The policy itself, hotter and colder."""
        return frozenset({"logp@t=1.2", "logp@t=0.8"})

    @property
    def reads_parts(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.part,)

    @property
    def reads_whole_batch(self) -> bool:
        """Yes: the share that is right is the batch's."""
        return True

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        tempered = batch.seen["logp@t=1.2" if self.entropy <= self.target else "logp@t=0.8"]
        rho = (tempered - batch.old_logp).masked_fill(~batch.mask, 0.0).exp().to(x)
        b = (batch.parts[self.part] > self.above).to(x)
        a = min(abs(self.target - self.entropy), self.most) / b.mean()
        a = torch.where(b.mean() > 0, a / (1 + a), 0.0).nan_to_num()
        return (1 - a) * spread(x, batch) + a * spread(b, batch) * rho


def nothing(x: Tensor, batch: Batch) -> Tensor:
    """0 for every rollout: what is learned from is not the reward.

    >>> from grupo.testing.batches import batch_of
    >>> nothing(torch.tensor([1.0, 2.0]), batch_of(group=[0, 0]))
    tensor([0., 0.])
    """
    return torch.zeros_like(x)


def _paid(batch: Batch, other: str) -> PerAction:
    """k1 of each action, 0 where masked."""
    return k1(batch.old_logp, batch.seen[f"logp@{other}"]).masked_fill(~batch.mask, 0.0)
