"""Contrasts: losses that compare the rollouts of a group by what the policy now says of them.

They are numbers of rollouts or of groups, said on each of their actions: a weigh under which the
actions of a rollout add up to its share, `rollout_mean` or `group_mean`, takes their mean.
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


def mean_per_rollout(x: PerAction, batch: Batch) -> PerRollout:
    """Mean over the actions of each rollout, (R,); 0 where it took none.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> mean_per_rollout(torch.tensor([[1.0, 9.0], [2.0, 3.0]]), make_batch(group=[0, 0], length=[1, 2]))
    tensor([1.0000, 2.5000])
    """
    return sum_per_rollout(x, batch) / batch.lengths.clamp(min=1).to(x)


def rollout_log_ratio(pi: Signals, batch: Batch) -> PerRollout:
    """log pi(rollout) - log pi_old(rollout): the sum over its actions, (R,).

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], length=[2])
    >>> rollout_log_ratio(moved(batch, [[0.5, -0.25]]), batch).tolist()
    [0.25]
    """
    return sum_per_rollout(ratios.token_log_ratio(pi, batch), batch)


def mean_logp(pi: Signals, batch: Batch) -> PerRollout:
    """The length-normalised log-likelihood of each rollout, (R,).

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], length=[2], logp=-1.0)
    >>> mean_logp(moved(batch, [[0.5, 0.0]]), batch).tolist()
    [-0.75]
    """
    return mean_per_rollout(pi.logp, batch)


def mean_ratio(pi: Signals, batch: Batch) -> PerRollout:
    """The mean importance ratio of each rollout's actions, unclipped, (R,).

    >>> from math import log
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0], length=[2])
    >>> mean_ratio(moved(batch, [[log(2.0), 0.0]]), batch).tolist()
    [1.5]
    """
    return mean_per_rollout(ratios.token(pi, batch), batch)


def is_success(batch: Batch) -> Tensor:
    """Which rollouts succeeded, (R,): those of positive reward.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> is_success(make_batch(group=[0, 0], reward=[1.0, -1.0])).tolist()
    [True, False]
    """
    return batch.reward > 0


def uniform_weights(batch: Batch) -> PerRollout:
    """Every rollout counts 1.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> uniform_weights(make_batch(group=[0, 0], reward=[1.0, -1.0])).tolist()
    [1.0, 1.0]
    """
    return torch.ones_like(batch.reward)


@component
class DiscriminativeLoss(Loss):
    """-J of each group: J = sum_right w s / sum_right w - tau log mean_wrong exp(s / tau).

    s is the score of a rollout, w how much a success counts. 0 where a group has no success or no
    failure. DisCO, Li et al., arXiv:2505.12366.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    >>> DiscriminativeLoss()(moved(batch, [[0.5], [0.0]]), batch).tolist()  # s = -0.5 and -1
    [[-0.5], [-0.5]]
    """

    score: Callable[[Signals, Batch], Tensor] = mean_logp
    tau: float = 10.0
    success_weight: Callable[[Batch], Tensor] = uniform_weights

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        s, good, g = self.score(pi, batch), is_success(batch), batch.group
        w = self.success_weight(batch).to(s) * good
        weight, wrong = group_ops.sum(w, g), group_ops.sum((~good).to(s), g)
        compared = (weight > 0) & (wrong > 0)
        mean_right = group_ops.sum(w * s, g) / torch.where(compared, weight, 1.0)
        exponent = (s / self.tau).masked_fill(good & compared, -torch.inf)
        hardest = group_ops.logsumexp(exponent, g) - wrong.clamp(min=1).log()
        return -broadcast_to_tokens(
            torch.where(compared, mean_right - self.tau * hardest, 0.0), batch
        )


@component
class TrustRegion(Loss):
    """beta / 2 max(0, K - delta)^2, with K = mean over actions of log pi_old - log pi.

    One number, said on every action: under weights that add up to 1 it is the penalty itself.
    DisCO, Li et al., arXiv:2505.12366.

    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0])
    >>> TrustRegion(2.0, 0.125)(moved(batch, [[-0.5], [-0.25]]), batch).tolist()  # K = 0.375
    [[0.0625], [0.0625]]
    """

    beta: float = 1000.0
    delta: float = 1e-4

    @property
    def couples_rows(self) -> bool:
        return True

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: how far the policy moved is a mean over all groups."""
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        K = -ratios.token_log_ratio(pi, batch).sum() / batch.mask.sum().clamp(min=1)
        penalty = self.beta / 2 * (K - self.delta).clamp(min=0) ** 2
        return penalty.expand(batch.mask.shape)
