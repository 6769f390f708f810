"""Token tables (R, L): the unmasked actions of each rollout in order, and the way back to (N, T).

A rollout may have several rows; its actions are ordered by turn, then by row and column. Masked
actions have no place in a table, and their values are never read.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.batch import Batch, PerAction, PerRollout

TokenTable = Float[Tensor, "R L"]


def discounted_sum(x: Tensor, discount: float | Tensor) -> Tensor:
    """y_t = x_t + discount y_(t+1) along the last axis of `x` (R, L).

    Computed by doubling: after n iterations y_t = sum over k < 2^n of discount^k x_(t+k).

    Args:
        x: one row per rollout, (R, L).
        discount: a number, or one per row, (R, 1).

    >>> discounted_sum(torch.tensor([[1.0, 0.0, 4.0]]), 0.5)
    tensor([[2., 2., 4.]])
    """
    span = 1
    while span < x.shape[1]:
        x = x + discount**span * shift_left(x, span)
        span *= 2
    return x


def shift_left(x: Tensor, offset: int = 1, fill: float = 0.0) -> Tensor:
    """y[:, t] = x[:, t + offset], `fill` beyond the end.

    >>> shift_left(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 3., 0.]])
    """
    offset = min(offset, x.shape[1])
    return torch.nn.functional.pad(x[:, offset:], (0, offset), value=fill)


def shift_right(x: Tensor, offset: int = 1, fill: float = 0.0) -> Tensor:
    """y[:, t] = x[:, t - offset], `fill` before the start.

    >>> shift_right(torch.tensor([[1.0, 2.0, 3.0]]), offset=2)
    tensor([[0., 0., 1.]])
    """
    offset = min(offset, x.shape[1])
    return torch.nn.functional.pad(x[:, : x.shape[1] - offset], (offset, 0), value=fill)


def sum_per_rollout(x: PerAction, batch: Batch) -> PerRollout:
    """Sum of `x` (N, T) over the unmasked actions of each rollout, (R,), in the dtype of `x`.

    Differentiable.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1])
    >>> sum_per_rollout(torch.tensor([[1.0, 2.0], [4.0, 9.0]]), batch)
    tensor([3., 4.])
    """
    rows = x.masked_fill(~batch.mask, 0.0).sum(1)
    return rows.new_zeros(len(batch.reward)).index_add(0, batch.rollout, rows)


def token_index(batch: Batch) -> Int[Tensor, "N T"]:
    """Position of each action among the actions of its rollout, from 0; -1 where masked.

    Actions are ordered by turn, then by row and column.

    >>> from grupo.testing.batches import make_batch
    >>> token_index(make_batch(group=[0, 0], length=[2, 1])).tolist()
    [[0, 1], [0, -1]]
    """
    row, column = batch.mask.nonzero(as_tuple=True)
    rollout, turn = rollout_and_turn(batch)
    order = turn.argsort(stable=True)
    order = order[rollout[order].argsort(stable=True)]
    sorted_rollout = rollout[order].contiguous()
    first = torch.searchsorted(sorted_rollout, sorted_rollout)
    index = torch.arange(len(order), device=first.device) - first
    return torch.full_like(batch.turn, -1).index_put((row[order], column[order]), index)


def to_token_table(x: PerAction, batch: Batch) -> TokenTable:
    """Arrange `x` (N, T) as one row per rollout, (R, L), 0 beyond its last action.

    The result has the dtype of the rewards.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1])
    >>> to_token_table(torch.tensor([[1.0, 2.0], [4.0, 9.0]]), batch)
    tensor([[1., 2.],
            [4., 0.]], dtype=torch.float64)
    """
    length = int(batch.lengths.max()) if len(batch.reward) else 0
    table = batch.reward.new_zeros(len(batch.reward), length)
    return table.index_put(_table_index(batch), x[batch.mask].to(table))


def from_token_table(x: TokenTable, batch: Batch) -> PerAction:
    """Arrange a token table (R, L) as (N, T), 0 where masked: the inverse of `to_token_table`.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1])
    >>> from_token_table(torch.tensor([[1.0, 2.0], [4.0, 9.0]]), batch)
    tensor([[1., 2.],
            [4., 0.]])
    """
    return scatter_tokens(x[_table_index(batch)], batch)


def at_last_token(x: PerRollout, batch: Batch) -> PerAction:
    """Place a value per rollout (R,) at the rollout's last action, 0 elsewhere, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1])
    >>> at_last_token(torch.tensor([1.0, 2.0]), batch).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    last = (token_index(batch) == batch.lengths[batch.rollout, None] - 1) & batch.mask
    return x[batch.rollout, None] * last


def rollout_and_turn(batch: Batch) -> tuple[Int[Tensor, "A"], Int[Tensor, "A"]]:
    """Rollout and turn of each of the A unmasked actions, in order of rows and columns.

    >>> from grupo.testing.batches import make_batch
    >>> rollout_and_turn(make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]]))
    (tensor([0, 0, 1]), tensor([0, 1, 0]))
    """
    return batch.rollout[:, None].expand_as(batch.mask)[batch.mask], batch.turn[batch.mask]


def scatter_tokens(x: Float[Tensor, "A"], batch: Batch) -> PerAction:
    """Place a value per unmasked action (A,) at its action, 0 where masked, (N, T).

    The values are in order of rows and columns.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[2, 1])
    >>> scatter_tokens(torch.tensor([1.0, 2.0, 3.0]), batch)
    tensor([[1., 2.],
            [3., 0.]])
    """
    return x.new_zeros(batch.mask.shape).masked_scatter(batch.mask, x)


def _table_index(batch: Batch) -> tuple[Tensor, Tensor]:
    """Row and column in the token table of each unmasked action."""
    return rollout_and_turn(batch)[0], token_index(batch)[batch.mask]
