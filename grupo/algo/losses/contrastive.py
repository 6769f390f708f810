"""Contrastive losses: they compare the rollouts of a group by their likelihood under the policy.

A loss of a rollout, or of a group, is placed on each of its actions. Aggregate with weights that
sum to the share of the rollout, `rollout_mean` or `group_mean`: the result is the mean loss.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive
from grupo.core.requires import Requires


def mean_per_rollout(x: PerAction, batch: Batch) -> PerRollout:
    """Mean of `x` (N, T) over the tokens of each rollout, (R,); 0 for a rollout without tokens.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[1, 2])
    >>> mean_per_rollout(torch.tensor([[1.0, 9.0], [2.0, 3.0]]), batch)
    tensor([1.0000, 2.5000])
    """
    return sum_per_rollout(x, batch) / batch.lengths.clamp(min=1).to(x)


def rollout_log_ratio(pi: Signals, batch: Batch) -> PerRollout:
    """log pi(y) - log pi_old(y) of each whole rollout y, in nats, (R,).

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2])
    >>> rollout_log_ratio(perturb_logp(batch, [[0.5, -0.25]]), batch).tolist()
    [0.25]
    """
    return sum_per_rollout(ratios.token_log_ratio(pi, batch), batch)


def mean_logp(pi: Signals, batch: Batch) -> PerRollout:
    """Length-normalised log-likelihood log pi(y) / |y| of each rollout y, in nats, (R,).

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0)
    >>> mean_logp(perturb_logp(batch, [[0.5, 0.0]]), batch).tolist()
    [-0.75]
    """
    return mean_per_rollout(pi.logp, batch)


def mean_ratio(pi: Signals, batch: Batch) -> PerRollout:
    """Mean of the unclipped token ratios pi / pi_old of each rollout, (R,).

    >>> from math import log
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0], length=[2])
    >>> mean_ratio(perturb_logp(batch, [[log(2.0), 0.0]]), batch).tolist()
    [1.5]
    """
    return mean_per_rollout(ratios.token(pi, batch), batch)


def is_success(batch: Batch) -> Tensor:
    """True for rollouts with a positive reward, (R,).

    >>> from grupo.testing.batches import make_batch
    >>> is_success(make_batch(group=[0, 0], reward=[1.0, -1.0])).tolist()
    [True, False]
    """
    return batch.reward > 0


def uniform_weights(batch: Batch) -> PerRollout:
    """Weight 1 for every rollout, (R,).

    >>> from grupo.testing.batches import make_batch
    >>> uniform_weights(make_batch(group=[0, 0], reward=[1.0, -1.0])).tolist()
    [1.0, 1.0]
    """
    return torch.ones_like(batch.reward)


@component
class DiscriminativeLoss(Loss):
    """-J per group, J = (weighted mean of s over successes) - tau log mean_failures exp(s / tau).

    s is the score of a rollout under the policy. The loss is placed on all actions of the group,
    (N, T); it is 0 for a group without a success or without a failure.
    Source: DisCO, Li et al., arXiv:2505.12366.

    Args:
        score: s, a function `(pi, batch) -> (R,)`.
        tau: temperature; a large one compares with the mean failure, a small one with the hardest.
        success_weight: weight of each success, a function `batch -> (R,)`.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    >>> pi = perturb_logp(batch, [[0.5], [0.0]])  # s = -0.5 and -1
    >>> DiscriminativeLoss()(pi, batch).tolist()
    [[-0.5], [-0.5]]
    """

    score: Callable[[Signals, Batch], Tensor] = mean_logp
    tau: Positive = 10.0
    success_weight: Callable[[Batch], Tensor] = uniform_weights

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        s = self.score(pi, batch)
        success = is_success(batch)
        group = batch.group
        w = self.success_weight(batch).to(s) * success
        total_weight = group_ops.sum(w, group)
        num_failures = group_ops.sum((~success).to(s), group)
        has_both = (total_weight > 0) & (num_failures > 0)
        mean_success = group_ops.sum(w * s, group) / torch.where(has_both, total_weight, 1.0)
        exponent = (s / self.tau).masked_fill(success & has_both, -torch.inf)
        log_mean_failure = group_ops.logsumexp(exponent, group) - num_failures.clamp(min=1).log()
        J = torch.where(has_both, mean_success - self.tau * log_mean_failure, 0.0)
        return -broadcast_to_tokens(J, batch)


@component
class TrustRegion(Loss):
    """beta / 2 max(0, K - delta)^2 with K the mean over tokens of log pi_old - log pi.

    One number, placed on every action, (N, T); with weights that sum to 1 it is the penalty itself.
    Source: DisCO, Li et al., arXiv:2505.12366.

    Args:
        beta: coefficient of the penalty.
        delta: KL from which the penalty applies, in nats.

    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> batch = make_batch(group=[0, 0])
    >>> pi = perturb_logp(batch, [[-0.5], [-0.25]])  # K = 0.375
    >>> TrustRegion(2.0, 0.125)(pi, batch).tolist()
    [[0.0625], [0.0625]]
    """

    beta: NonNegative = 1000.0
    delta: NumberOrSchedule = 1e-4

    # K is a mean over all groups
    requires = Requires(coupled_rows=True, whole_batch=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        K = -ratios.token_log_ratio(pi, batch).sum() / batch.mask.sum().clamp(min=1)
        penalty = self.beta / 2 * (K - self.delta).clamp(min=0) ** 2
        return penalty.expand(batch.mask.shape)
