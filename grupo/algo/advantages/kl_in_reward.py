"""Other policies in the credit: what is paid for being unlike one, or gained for being like one.

What is paid is log pi_old - log pi_other of the actions that were taken, in nats (k1): unbiased, a
constant of the update, and credited like any reward.
"""

import torch
from torch import Tensor

from grupo.algo.divergences import k1
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component


@component
class _KLPenalty:
    """At what price, and for being unlike whom."""

    kl_coef: float
    other_policy: str = "ref"

    @property
    def required_signals(self) -> frozenset[str]:
        """What the other said of the actions."""
        return frozenset({f"logp@{self.other_policy}"})


@component
class KLInReward(_KLPenalty):
    """x - `coefficient` sum over the rollout's actions of k1, (R,): before a baseline is taken.

    Ziegler et al., arXiv:1909.08593.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0, signals={"logp@ref": [[-1.5, -3.0]]})
    >>> KLInReward(0.2)(torch.tensor([1.0]), batch)
    tensor([0.5000])
    """

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        paid = _k1_per_action(batch, self.other_policy).sum(1).to(x)
        return x - self.kl_coef * torch.zeros_like(x).index_add(0, batch.rollout, paid)


@component
class KLPerAction(_KLPenalty):
    """x_t - `coefficient` k1_t, (N, T): every action pays for itself alone.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0, signals={"logp@ref": [[-1.5, -3.0]]})
    >>> KLPerAction(0.5)(torch.tensor([1.0]), batch)
    tensor([[0.7500, 0.0000]])
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        return broadcast_to_tokens(x, batch) - self.kl_coef * _k1_per_action(
            batch, self.other_policy
        ).to(x)


@component
class KLToGo(_KLPenalty):
    """x_t - `coefficient` sum_{s >= t} k1_s, (N, T): an action pays for what follows in its row.

    Another row of the same rollout has another context; its actions are its own to pay for.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0, signals={"logp@ref": [[-1.5, -3.0]]})
    >>> KLToGo(0.5)(torch.tensor([1.0]), batch)
    tensor([[-0.2500,  0.0000]])
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        later = _k1_per_action(batch, self.other_policy).flip(1).cumsum(1).flip(1) * batch.mask
        return broadcast_to_tokens(x, batch) - self.kl_coef * later.to(x)


@component
class TemperatureRatioBonus:
    """(1 - a) x + a b rho, b 1 where right, rho = pi_old at another temperature / pi_old.

    The temperature is 1.2 times its own while `entropy` is at most `target`, 0.8 times above.
    a' = min(|target - entropy|, `most`) / (share that is right), a = a' / (1 + a'). DCPO, Li et
    al., arXiv:2601.12730.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> seen = {"logp@t=1.2": [[-1.0], [-1.0]], "logp@t=0.8": [[0.0], [0.0]]}
    >>> batch = make_batch([0, 0], logp=-1.0, reward_terms={"correct": [1.0, 1.0]}, signals=seen)
    >>> TemperatureRatioBonus(entropy=0.0, target_entropy=1.0, max_coef=1.0)(torch.tensor([3.0, -1.0]), batch)  # a = 1/2
    tensor([[2.],
            [0.]])
    """

    entropy: float
    target_entropy: float
    max_coef: float = 0.1
    success_threshold: float = 0.05
    reward_term: str = "correct"

    @property
    def required_signals(self) -> frozenset[str]:
        """The policy itself, hotter and colder."""
        return frozenset({"logp@t=1.2", "logp@t=0.8"})

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.reward_term,)

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: the share that is right is the batch's."""
        return True

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        tempered = batch.signals[
            "logp@t=1.2" if self.entropy <= self.target_entropy else "logp@t=0.8"
        ]
        rho = (tempered - batch.old_logp).masked_fill(~batch.mask, 0.0).exp().to(x)
        b = (batch.reward_terms[self.reward_term] > self.success_threshold).to(x)
        a = min(abs(self.target_entropy - self.entropy), self.max_coef) / b.mean()
        a = torch.where(b.mean() > 0, a / (1 + a), 0.0).nan_to_num()
        return (1 - a) * broadcast_to_tokens(x, batch) + a * broadcast_to_tokens(b, batch) * rho


def zero_advantage(x: Tensor, batch: Batch) -> Tensor:
    """0 for every rollout: what is learned from is not the reward.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> zero_advantage(torch.tensor([1.0, 2.0]), make_batch(group=[0, 0]))
    tensor([0., 0.])
    """
    return torch.zeros_like(x)


def _k1_per_action(batch: Batch, other_policy: str) -> PerAction:
    """k1 of each action, 0 where masked."""
    return k1(batch.old_logp, batch.signals[f"logp@{other_policy}"]).masked_fill(~batch.mask, 0.0)
