"""Levels at which a per-token number is averaged: token, row sum, row mean, row maximum.

Importance corrections apply a level to log-ratios before they bound or threshold them.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.core.batch import Batch, PerAction

Level = Callable[[Tensor, Batch], Tensor]  # (N, T) to (N, T) or (N, 1)


def per_action(x: PerAction, batch: Batch) -> PerAction:
    """Return `x` (N, T) unchanged: every token keeps its own number.

    >>> from grupo.testing.batches import make_batch
    >>> per_action(torch.tensor([[1.0, 9.0]]), make_batch(group=[0], length=[2]))
    tensor([[1., 9.]])
    """
    return x


def row_sum(x: PerAction, batch: Batch) -> Tensor:
    """Sum of `x` (N, T) over the unmasked tokens of each row, (N, 1).

    >>> from grupo.testing.batches import make_batch
    >>> row_sum(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[4.],
            [2.]])
    """
    return x.masked_fill(~batch.mask, 0.0).sum(1, keepdim=True)


def row_mean(x: PerAction, batch: Batch) -> Tensor:
    """Mean of `x` (N, T) over the unmasked tokens of each row, (N, 1); 0 for a row without any.

    >>> from grupo.testing.batches import make_batch
    >>> row_mean(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[2.],
            [2.]])
    """
    return row_sum(x, batch) / batch.mask.sum(1, keepdim=True).clamp(min=1)


def row_max(x: PerAction, batch: Batch) -> Tensor:
    """Maximum of `x` (N, T) over the unmasked tokens of each row, (N, 1); -inf without any.

    >>> from grupo.testing.batches import make_batch
    >>> row_max(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[3.],
            [2.]])
    """
    kept = x.masked_fill(~batch.mask, -torch.inf)
    # one more column, so that rows of no columns have a maximum
    return torch.nn.functional.pad(kept, (0, 1), value=-torch.inf).amax(1, keepdim=True)
