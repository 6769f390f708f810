"""Levels at which a per-token number is averaged: token, row sum, row mean, row maximum.

Importance corrections apply a level to log-ratios before they bound or threshold them. The rows of
a rollout that a chat template forked are one sequence (`Batch.sequence`): each of them has the
number of the sequence.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.core.batch import Batch, PerAction
from grupo.core.requires import Requires, declares
from grupo.util.ordered_sums import select_by_index, sum_by_index

Level = Callable[[Tensor, Batch], Tensor]  # (N, T) to (N, T) or (N, 1)
SEQUENCES = Requires(coupled_sequences=True)


def per_action(x: PerAction, batch: Batch) -> PerAction:
    """Return `x` (N, T) unchanged: every token keeps its own number.

    >>> from grupo.testing.batches import make_batch
    >>> per_action(torch.tensor([[1.0, 9.0]]), make_batch(group=[0], length=[2]))
    tensor([[1., 9.]])
    """
    return x


@declares(SEQUENCES)
def row_sum(x: PerAction, batch: Batch) -> Tensor:
    """Sum of `x` (N, T) over the unmasked tokens of each row's sequence, (N, 1).

    >>> from grupo.testing.batches import make_batch
    >>> row_sum(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[4.],
            [2.]])
    """
    per_row = x.masked_fill(~batch.mask, 0.0).sum(1)
    index = batch.sequence_index
    return select_by_index(sum_by_index(per_row, index, len(index)), index)[:, None]


@declares(SEQUENCES)
def row_mean(x: PerAction, batch: Batch) -> Tensor:
    """Mean of `x` (N, T) over the unmasked tokens of each row's sequence, (N, 1); 0 without any.

    >>> from grupo.testing.batches import make_batch
    >>> row_mean(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[2.],
            [2.]])
    """
    length = batch.sequence_lengths[:, None].clamp(min=1)
    return row_sum(x, batch) / length.to(x)


@declares(SEQUENCES)
def row_max(x: PerAction, batch: Batch) -> Tensor:
    """Maximum of `x` (N, T) over the unmasked tokens of each row's sequence, (N, 1).

    It is -inf for a sequence without any.

    >>> from grupo.testing.batches import make_batch
    >>> row_max(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[3.],
            [2.]])
    """
    kept = x.masked_fill(~batch.mask, -torch.inf)
    # one more column, so that rows of no columns have a maximum
    per_row = torch.nn.functional.pad(kept, (0, 1), value=-torch.inf).amax(1)
    index = batch.sequence_index
    largest = torch.full_like(per_row, -torch.inf).scatter_reduce(0, index, per_row, "amax")
    return select_by_index(largest, index)[:, None]
