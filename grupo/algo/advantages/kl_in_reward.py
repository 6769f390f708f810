"""KL penalties inside the reward: log-ratios to another policy, subtracted before the baseline.

The penalty is k1 = log pi_old - log pi_other of the generated tokens, in nats: unbiased, constant
during the update, and part of the advantage like any reward.
"""

import torch
from torch import Tensor

from grupo.algo.divergences import k1
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Requires


@component
class _KLPenalty:
    """Coefficient of a KL penalty, and the policy it is measured against.

    Args:
        kl_coef: reward lost per nat.
        other_policy: name of the policy whose `logp@<name>` is measured.
    """

    kl_coef: NumberOrSchedule
    other_policy: str = "ref"

    @property
    def requires(self) -> Requires:
        return Requires(signals=(f"logp@{self.other_policy}",))


@component
class KLInReward(_KLPenalty):
    """x - kl_coef sum_t k1_t over the tokens of the rollout, (R,): before the baseline.

    Source: Ziegler et al., arXiv:1909.08593.

    Args:
        kl_coef: reward lost per nat.
        other_policy: name of the other policy.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0, signals={"logp@ref": [[-1.5, -3.0]]})
    >>> KLInReward(0.2)(torch.tensor([1.0]), batch)
    tensor([0.5000])
    """

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        per_row = _k1_per_action(batch, self.other_policy).sum(1).to(x)
        return x - self.kl_coef * torch.zeros_like(x).index_add(0, batch.rollout, per_row)


@component
class KLPerAction(_KLPenalty):
    """x_t - kl_coef k1_t, (N, T): the penalty of a token affects that token alone.

    Args:
        kl_coef: advantage lost per nat.
        other_policy: name of the other policy.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0, signals={"logp@ref": [[-1.5, -3.0]]})
    >>> KLPerAction(0.5)(torch.tensor([1.0]), batch)
    tensor([[0.7500, 0.0000]])
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        penalty = _k1_per_action(batch, self.other_policy).to(x)
        return broadcast_to_tokens(x, batch) - self.kl_coef * penalty


@component
class KLToGo(_KLPenalty):
    """x_t - kl_coef sum_{s >= t} k1_s over the later tokens of the same row, (N, T).

    Tokens in other rows of the rollout have another context and are not included.

    Args:
        kl_coef: advantage lost per nat.
        other_policy: name of the other policy.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0, signals={"logp@ref": [[-1.5, -3.0]]})
    >>> KLToGo(0.5)(torch.tensor([1.0]), batch)
    tensor([[-0.2500,  0.0000]])
    """

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        per_action = _k1_per_action(batch, self.other_policy)
        to_go = per_action.flip(1).cumsum(1).flip(1) * batch.mask
        return broadcast_to_tokens(x, batch) - self.kl_coef * to_go.to(x)


@component
class TemperatureRatioBonus:
    """(1 - a) x + a b rho, (N, T): a bonus for tokens of correct rollouts that steers entropy.

    b is 1 for correct rollouts, else 0. rho = pi_tau / pi_old, with pi_tau the policy at tau times
    its temperature: tau = 1.2 while `entropy` <= `target_entropy`, else 0.8.
    a = a' / (1 + a') with a' = min(|target_entropy - entropy|, max_coef) / mean(b).
    Source: DCPO, Li et al., arXiv:2601.12730.

    Args:
        entropy: entropy of the policy at the previous step, in nats.
        target_entropy: entropy that the bonus steers to, in nats.
        max_coef: bound of the numerator of a'.
        success_threshold: a rollout is correct if the reward term is above this.
        reward_term: name of the reward term that measures correctness.

    >>> from grupo.testing.batches import make_batch
    >>> logp = {"logp@t=1.2": [[-1.0], [-1.0]], "logp@t=0.8": [[0.0], [0.0]]}
    >>> correct = {"correct": [1.0, 1.0]}
    >>> batch = make_batch([0, 0], logp=-1.0, reward_terms=correct, signals=logp)
    >>> bonus = TemperatureRatioBonus(entropy=0.0, target_entropy=1.0, max_coef=1.0)  # a = 1/2
    >>> bonus(torch.tensor([3.0, -1.0]), batch)
    tensor([[2.],
            [0.]])
    """

    entropy: NumberOrSchedule
    target_entropy: NumberOrSchedule
    max_coef: NumberOrSchedule = 0.1
    success_threshold: NumberOrSchedule = 0.05
    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        # logp@t=x: at x times the policy's temperature; whole_batch: `b.mean()` is over all groups
        return Requires(
            signals=("logp@t=1.2", "logp@t=0.8"), reward_terms=(self.reward_term,), whole_batch=True
        )

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        name = "logp@t=1.2" if self.entropy <= self.target_entropy else "logp@t=0.8"
        log_rho = batch.signals[name] - batch.old_logp
        rho = log_rho.masked_fill(~batch.mask, 0.0).exp().to(x)
        b = (batch.reward_terms[self.reward_term] > self.success_threshold).to(x)
        a = min(abs(self.target_entropy - self.entropy), self.max_coef) / b.mean()
        a = torch.where(b.mean() > 0, a / (1 + a), 0.0)
        return (1 - a) * broadcast_to_tokens(x, batch) + a * broadcast_to_tokens(b, batch) * rho


def zero_advantage(x: Tensor, batch: Batch) -> Tensor:
    """Advantage 0 for every rollout: the method trains on something other than the reward.

    >>> from grupo.testing.batches import make_batch
    >>> zero_advantage(torch.tensor([1.0, 2.0]), make_batch(group=[0, 0]))
    tensor([0., 0.])
    """
    return torch.zeros_like(x)


def _k1_per_action(batch: Batch, other_policy: str) -> PerAction:
    """k1 of each token, 0 where masked."""
    return k1(batch.old_logp, batch.signals[f"logp@{other_policy}"]).masked_fill(~batch.mask, 0.0)
