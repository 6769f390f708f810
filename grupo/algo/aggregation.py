"""Weights: how much each action counts in the loss.

A weigh is a function `batch -> (N, ANSWER_LENGTH)` of the mask, the grouping and what was measured before the
update. It is computed once, on the whole minibatch; the loss is then the plain sum of weight x
loss, whatever the micro-batches and the ranks.
"""

import math
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, broadcast_to_tokens
from grupo.core.component import component


@runtime_checkable
class Aggregation(Protocol):
    """How much each action counts, (N, T), 0 where masked."""

    def __call__(self, batch: Batch, /) -> PerAction: ...


def token_mean(batch: Batch) -> PerAction:
    """Every action counts the same: 1 / sum_i L_i.

    DAPO (arXiv:2503.14476), eq. 8.
        >>> from grupo.testing.batch_sizes import batch_of
        >>> token_mean(make_batch(group=[0, 0], length=[1, 3])).tolist()
        [[0.25, 0.0, 0.0], [0.25, 0.25, 0.25]]
    """
    return batch.mask.to(batch.old_logp) / batch.mask.sum().clamp(min=1)


def sequence_mean(batch: Batch) -> PerAction:
    """Every row counts the same, and within a row every action: 1 / (N L_i).

    GRPO (arXiv:2402.03300), eq. 3.
        >>> from grupo.testing.batch_sizes import batch_of
        >>> sequence_mean(make_batch(group=[0, 0], length=[1, 2])).tolist()
        [[0.5, 0.0], [0.25, 0.25]]
    """
    return token_sum(batch) / batch.mask.sum(1, keepdim=True).clamp(min=1)


def token_sum(batch: Batch) -> PerAction:
    """Rows count by their length: 1 / N for every action of N rows that acted.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> token_sum(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    return batch.mask.to(batch.old_logp) / batch.mask.any(1).sum().clamp(min=1)


@component
class ConstantLength:
    """Every action counts 1 / (N `length`), however long its row.

    Dr. GRPO (arXiv:2503.20783), section 3.2 and listing 1.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> ConstantLength(4)(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.125, 0.0], [0.125, 0.125]]
    """

    max_length: int

    def __call__(self, batch: Batch) -> PerAction:
        return token_sum(batch) / self.max_length


def rollout_mean(batch: Batch) -> PerAction:
    """Every rollout counts the same, and within it every action of all its rows: 1 / (R L_i).

    >>> from grupo.testing.batch_sizes import batch_of
    >>> rollout_mean(make_batch(group=[0, 0], length=[1, 2])).tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    acted = batch.lengths > 0
    share = acted / (batch.lengths.clamp(min=1) * acted.sum().clamp(min=1))
    return broadcast_to_tokens(share, batch).to(batch.old_logp)


def group_mean(batch: Batch) -> PerAction:
    """Every group counts the same, within it every rollout, within that every action.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> group_mean(make_batch(group=[0, 0, 1], length=[1, 2, 1])).tolist()
    [[0.25, 0.0], [0.125, 0.125], [0.5, 0.0]]
    """
    acted = batch.lengths > 0
    size = group_ops.sum(acted.to(batch.reward), batch.group).clamp(min=1)
    number = max(1, batch.group[acted].unique().numel())
    return broadcast_to_tokens(acted / (batch.lengths.clamp(min=1) * size * number), batch).to(
        batch.old_logp
    )


def group_sum(batch: Batch) -> PerAction:
    """Every group counts the same; within it rows are means over their actions, and summed.

    1 / (P L_i): what DCPO (arXiv:2509.02333) calls the only token mean.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> group_sum(make_batch(group=[0, 0, 1], length=[1, 2, 2])).tolist()
    [[0.5, 0.0], [0.25, 0.25], [0.25, 0.25]]
    """
    acted = batch.mask.any(1)
    length = batch.mask.sum(1, keepdim=True).clamp(min=1)
    return batch.mask.to(batch.old_logp) / length / max(len(batch.row_group[acted].unique()), 1)


def top_fraction_mask(x: Tensor, fraction: float) -> Tensor:
    """Where `x` (n,) is among its `share` n largest, rounded up; who ties with the last is in.

    >>> top_fraction_mask(torch.tensor([0.1, 2.0, 0.3, 1.5, 0.05]), 0.4).tolist()
    [False, True, False, True, False]
    """
    n = max(1, math.ceil(fraction * len(x) - 1e-9))
    return x >= x.sort(descending=True).values[:n][-1:]


def hash_uniform(x: Tensor) -> Tensor:
    """A number in [0, 1) drawn by the bits of each `x`: fair, whatever the order, and repeatable.

    >>> hash_uniform(torch.tensor([-1.25, -1.26], dtype=torch.float64))
    tensor([0.8750, 0.7620], dtype=torch.float64)
    """
    return (x.double() * 618_033_988.7).frac().abs()


@component
class TopEntropyMask:
    """`aggregation` on the `share` of the batch's actions whose entropy is highest, 0 on all others.

    "Beyond the 80/20 rule", Wang et al., arXiv:2506.01939: the others still count in the
    denominator.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], length=[1, 2], signals={"entropy": [[0.1, 9.0], [2.0, 0.3]]})
    >>> TopEntropyMask(0.3)(batch).tolist()
    [[0.0, 0.0], [0.3333333333333333, 0.0]]
    """

    fraction: float = 0.2
    aggregation: Aggregation = token_mean

    @property
    def required_signals(self) -> frozenset[str]:
        """The entropy of the policy that is about to be trained."""
        return frozenset({"entropy"})

    def __call__(self, batch: Batch) -> PerAction:
        kept = torch.zeros_like(batch.mask)
        kept[batch.mask] = top_fraction_mask(batch.signals["entropy"][batch.mask], self.fraction)
        return self.aggregation(batch) * kept


@component
class NormalisedAggregation:
    """`aggregation` scaled to add up to 1.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0], length=[1, 2], signals={"entropy": [[0.1, 9.0], [2.0, 0.3]]})
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
    """Every action with an advantage counts the same among its kind, those alike in `part`.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> kinds = {"role": [0.0, 1.0, 1.0]}
    >>> batch = make_batch(group=[0] * 3, length=[1, 2, 2], advantage=[1.0, 2.0, 0.0], reward_terms=kinds)
    >>> PerClassMean("role")(batch).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]
    """

    reward_term: str

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component of the reward that tells kinds apart."""
        return (self.reward_term,)

    def __call__(self, batch: Batch) -> PerAction:
        taught = batch.mask & (batch.advantage != 0)
        kind = batch.reward_terms[self.reward_term].unique(return_inverse=True)[1][batch.rollout]
        count = torch.zeros_like(batch.reward).index_add(0, kind, taught.sum(1).to(batch.reward))
        return (taught / count[kind, None].clamp(min=1)).to(batch.old_logp)
