"""Numbers of an action, or of its row: what is averaged before it is bounded or compared."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.core.batch import Batch, PerAction

Level = Callable[[Tensor, Batch], Tensor]  # (N, T) to (N, T) or (N, 1)


def per_action(x: PerAction, batch: Batch) -> PerAction:
    """Each action's own.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> per_action(torch.tensor([[1.0, 9.0]]), make_batch(group=[0], length=[2]))
    tensor([[1., 9.]])
    """
    return x


def row_sum(x: PerAction, batch: Batch) -> Tensor:
    """The sum over the row, (N, 1).

    >>> from grupo.testing.batch_sizes import batch_of
    >>> row_sum(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[4.],
            [2.]])
    """
    return x.masked_fill(~batch.mask, 0.0).sum(1, keepdim=True)


def row_mean(x: PerAction, batch: Batch) -> Tensor:
    """The mean over the row, (N, 1); 0 where it took no action.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> row_mean(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[2.],
            [2.]])
    """
    return row_sum(x, batch) / batch.mask.sum(1, keepdim=True).clamp(min=1)


def row_max(x: PerAction, batch: Batch) -> Tensor:
    """The greatest of the row, (N, 1).

    >>> from grupo.testing.batch_sizes import batch_of
    >>> row_max(torch.tensor([[1.0, 3.0], [2.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[3.],
            [2.]])
    """
    return x.masked_fill(~batch.mask, -torch.inf).amax(1, keepdim=True)
