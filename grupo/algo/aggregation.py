"""Aggregations: the weight of each action in the loss.

An aggregation is a function `batch -> weights (N, T)` of the mask, the grouping and signals that
were measured before the update. It is computed once, on the whole minibatch; the scalar loss is
the plain sum of weight x token loss, so micro-batches and ranks cannot change the gradient.
Masked actions have weight 0.

Letters in the formulas: P groups, R rollouts, N rows with at least one unmasked action, L_i the
number of unmasked actions of row (or rollout) i. The rows of a rollout that a chat template forked
count as one (`Batch.sequence`).
"""

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.requires import Requires


@runtime_checkable
class Aggregation(Protocol):
    """Weight of each action in the loss, (N, T), 0 where masked."""

    def __call__(self, batch: Batch, /) -> PerAction: ...


def token_mean(batch: Batch) -> PerAction:
    """Weight 1 / sum_i L_i: the mean over all tokens of the batch.

    Source: DAPO (arXiv:2503.14476), eq. 8.

    >>> from grupo.testing.batches import make_batch
    >>> token_mean(make_batch(group=[0, 0], length=[1, 3])).tolist()
    [[0.25, 0.0, 0.0], [0.25, 0.25, 0.25]]
    """
    return batch.mask.to(batch.old_logp) / batch.mask.sum().clamp(min=1)


def sequence_mean(batch: Batch) -> PerAction:
    """Weight 1 / (N L_i): the mean over rows of each row's token mean.

    Source: GRPO (arXiv:2402.03300), eq. 3.

    >>> from grupo.testing.batches import make_batch
    >>> sequence_mean(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    return token_sum(batch) / batch.sequence_lengths[:, None].clamp(min=1).to(batch.old_logp)


def token_sum(batch: Batch) -> PerAction:
    """Weight 1 / N: the mean over rows of each row's token sum, so long rows count more.

    >>> from grupo.testing.batches import make_batch
    >>> token_sum(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    return batch.mask.to(batch.old_logp) / max(1, batch.num_sequences)


def batch_sum(batch: Batch) -> PerAction:
    """Weight 1: the sum over all tokens of the batch (verl's `token-sum`).

    The gradient grows with the number of tokens: the learning rate belongs to one batch size.

    >>> from grupo.testing.batches import make_batch
    >>> batch_sum(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return batch.mask.to(batch.old_logp)


@component
class ConstantLength:
    """Weight 1 / (N max_length): token sums divided by one constant instead of the row's length.

    Source: Dr. GRPO (arXiv:2503.20783), section 3.2 and listing 1.

    Args:
        max_length: the constant, in tokens; the papers take the limit of an answer.

    >>> from grupo.testing.batches import make_batch
    >>> ConstantLength(4)(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.125, 0.0], [0.125, 0.125]]
    """

    max_length: PositiveInt

    def __call__(self, batch: Batch) -> PerAction:
        return token_sum(batch) / self.max_length


def rollout_mean(batch: Batch) -> PerAction:
    """Weight 1 / (R L_i), L_i over all rows of rollout i: every rollout counts the same.

    R counts the rollouts with at least one unmasked action.

    >>> from grupo.testing.batches import make_batch
    >>> rollout_mean(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    has_actions = batch.lengths > 0
    weight = has_actions / (batch.lengths.clamp(min=1) * has_actions.sum().clamp(min=1))
    return broadcast_to_tokens(weight, batch).to(batch.old_logp)


def group_mean(batch: Batch) -> PerAction:
    """Weight 1 / (P G_p L_i): groups count the same, and in a group all rollouts do.

    G_p is the number of rollouts of group p that have actions, L_i the length of the rollout.

    >>> from grupo.testing.batches import make_batch
    >>> group_mean(make_batch(group=[0, 0, 1], length=[1, 2, 1])).tolist()
    [[0.25, 0.0], [0.125, 0.125], [0.5, 0.0]]
    """
    has_actions = batch.lengths > 0
    group_size = group_ops.sum(has_actions.to(batch.reward), batch.group).clamp(min=1)
    num_groups = max(1, batch.group[has_actions].unique().numel())
    weight = has_actions / (batch.lengths.clamp(min=1) * group_size * num_groups)
    return broadcast_to_tokens(weight, batch).to(batch.old_logp)


def group_sum(batch: Batch) -> PerAction:
    """Weight 1 / (P L_i): the mean over groups of the sum of their rows' token means.

    Source: DCPO (arXiv:2509.02333), "only token mean".

    >>> from grupo.testing.batches import make_batch
    >>> group_sum(make_batch(group=[0, 0, 1], length=[1, 2, 2])).tolist()
    [[0.5, 0.0], [0.25, 0.25], [0.25, 0.25]]
    """
    has_actions = batch.mask.any(1)
    length = batch.sequence_lengths[:, None].clamp(min=1).to(batch.old_logp)
    num_groups = max(len(batch.row_group[has_actions].unique()), 1)
    return batch.mask.to(batch.old_logp) / length / num_groups


def top_fraction_mask(x: Tensor, fraction: float) -> Tensor:
    """True for the ceil(fraction n) largest of `x` (n,), at least one; ties with the last are True.

    Args:
        x: values, (n,).
        fraction: share of the values to select, in [0, 1].

    >>> top_fraction_mask(torch.tensor([0.1, 2.0, 0.3, 1.5, 0.05]), 0.4).tolist()
    [False, True, False, True, False]
    """
    n = max(1, math.ceil(fraction * len(x) - 1e-9))
    return x >= x.sort(descending=True).values[:n][-1:]


def hash_uniform(x: Tensor) -> Tensor:
    """Pseudo-random numbers in [0, 1) from the bits of `x`: repeatable, independent of order.

    Args:
        x: numbers that differ between items, such as log-probabilities; any shape.

    >>> hash_uniform(torch.tensor([-1.25, -1.26], dtype=torch.float64))
    tensor([0.8750, 0.7620], dtype=torch.float64)
    """
    return (x.double() * 618_033_988.7).frac().abs()


@component
class TopEntropyMask:
    """Train on the `fraction` of the batch's tokens with the highest entropy; the others weigh 0.

    The other tokens still count in the denominator of `aggregation`.
    Source: "Beyond the 80/20 rule", Wang et al., arXiv:2506.01939.

    Args:
        fraction: share of the batch's tokens that are trained on, in [0, 1]; at least one is.
        aggregation: weights before the mask.

    >>> from grupo.testing.batches import make_batch
    >>> entropy = {"entropy": [[0.1, 9.0], [2.0, 0.3]]}
    >>> batch = make_batch(group=[0, 0], length=[1, 2], signals=entropy)
    >>> TopEntropyMask(0.3)(batch).tolist()
    [[0.0, 0.0], [0.3333333333333333, 0.0]]
    """

    fraction: Fraction = 0.2
    aggregation: Aggregation = token_mean

    # `entropy` of the policy before the update, in nats
    requires = Requires(signals=("entropy",))

    def __call__(self, batch: Batch) -> PerAction:
        selected = torch.zeros_like(batch.mask)
        entropy = batch.signals["entropy"][batch.mask]
        selected[batch.mask] = top_fraction_mask(entropy, self.fraction)
        return self.aggregation(batch) * selected


@component
class NormalisedAggregation:
    """w / sum(w): weights of another aggregation, rescaled to sum to 1 (0 stays 0).

    Args:
        aggregation: weights before the normalisation.

    >>> from grupo.testing.batches import make_batch
    >>> entropy = {"entropy": [[0.1, 9.0], [2.0, 0.3]]}
    >>> batch = make_batch(group=[0, 0], length=[1, 2], signals=entropy)
    >>> NormalisedAggregation(TopEntropyMask(0.3))(batch).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """

    aggregation: Aggregation = token_mean

    def __call__(self, batch: Batch) -> PerAction:
        weight = self.aggregation(batch)
        total = weight.sum()
        return weight / torch.where(total > 0, total, torch.ones_like(total))


@component
class PerClassMean:
    """Token mean within each class of rollouts, summed over classes.

    A class is a value of the reward term `reward_term`. Weight 1 / (number of unmasked tokens with
    nonzero advantage in the class); tokens with advantage 0 weigh 0.

    Args:
        reward_term: name of the reward term whose value is the class.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(
    ...     group=[0] * 3,
    ...     length=[1, 2, 2],
    ...     advantage=[1.0, 2.0, 0.0],
    ...     reward_terms={"role": [0.0, 1.0, 1.0]},
    ... )
    >>> PerClassMean("role")(batch).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]
    """

    reward_term: str

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, batch: Batch) -> PerAction:
        trained = batch.mask & (batch.advantage != 0)
        classes = batch.reward_terms[self.reward_term].unique(return_inverse=True)[1]
        row_class = classes[batch.rollout]
        num_trained = trained.sum(1).to(batch.reward)
        count = torch.zeros_like(batch.reward).index_add(0, row_class, num_trained)
        return (trained / count[row_class, None].clamp(min=1)).to(batch.old_logp)
