"""Credit over actions: one line of a table per rollout, its actions in order, and back again.

Time runs through all of a rollout's rows, (R, L). Masked actions take none; what stands there is
never read.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.batch import Batch, PerAction, PerRollout

TokenTable = Float[Tensor, "R L"]


def discounted_sum(x: Tensor, discount: float | Tensor) -> Tensor:
    """y_t = x_t + decay y_(t+1) along each line; `decay` is a number, or one per line (R, 1).

    By doubling: after n steps y_t is the sum of decay^k x_(t+k) over k < 2^n.

    >>> discounted_sum(torch.tensor([[1.0, 0.0, 4.0]]), 0.5)
    tensor([[2., 2., 4.]])
    """
    span = 1
    while span < x.shape[1]:
        x = x + discount**span * shift_left(x, span)
        span *= 2
    return x


def shift_left(x: Tensor, offset: int = 1, fill: float = 0.0) -> Tensor:
    """What stands `by` columns later on each line, `beyond` after its end.

    >>> shift_left(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 3., 0.]])
    """
    offset = min(offset, x.shape[1])
    return torch.nn.functional.pad(x[:, offset:], (0, offset), value=fill)


def shift_right(x: Tensor, offset: int = 1, fill: float = 0.0) -> Tensor:
    """What stands `by` columns earlier on each line, `before` ahead of its start.

    >>> shift_right(torch.tensor([[1.0, 2.0, 3.0]]), offset=2)
    tensor([[0., 0., 1.]])
    """
    offset = min(offset, x.shape[1])
    return torch.nn.functional.pad(x[:, : x.shape[1] - offset], (offset, 0), value=fill)


def sum_per_rollout(x: PerAction, batch: Batch) -> PerRollout:
    """Sum over a rollout's actions, differentiable, in the precision of `x`.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> sum_per_rollout(torch.tensor([[1.0, 2.0], [4.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([3., 4.])
    """
    rows = x.masked_fill(~batch.mask, 0.0).sum(1)
    return rows.new_zeros(len(batch.reward)).index_add(0, batch.rollout, rows)


def token_index(batch: Batch) -> Int[Tensor, "N T"]:
    """The how-manieth of its rollout's actions each one is, from 0 on; -1 where masked.

    By turn, and within a turn by row and column.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> token_index(make_batch(group=[0, 0], length=[2, 1])).tolist()
    [[0, 1], [0, -1]]
    """
    row, column = batch.mask.nonzero(as_tuple=True)
    rollout, turn = rollout_and_turn(batch)
    order = turn.argsort(stable=True)
    order = order[rollout[order].argsort(stable=True)]
    sorted_rollout = rollout[order].contiguous()
    number = torch.arange(len(order)) - torch.searchsorted(sorted_rollout, sorted_rollout)
    return torch.full_like(batch.turn, -1).index_put((row[order], column[order]), number)


def to_token_table(x: PerAction, batch: Batch) -> TokenTable:
    """A rollout's actions in order, 0 beyond its last, in the precision of rewards.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> to_token_table(torch.tensor([[1.0, 2.0], [4.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[1., 2.],
            [4., 0.]], dtype=torch.float64)
    """
    length = int(batch.lengths.max()) if len(batch.reward) else 0
    table = batch.reward.new_zeros(len(batch.reward), length)
    return table.index_put(_table_index(batch), x[batch.mask].to(table))


def from_token_table(x: TokenTable, batch: Batch) -> PerAction:
    """From lines of actions back to rows, 0 where masked: the inverse of `to_token_table`.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> from_token_table(torch.tensor([[1.0, 2.0], [4.0, 9.0]]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[1., 2.],
            [4., 0.]])
    """
    return scatter_tokens(x[_table_index(batch)], batch)


def at_last_token(x: PerRollout, batch: Batch) -> PerAction:
    """A number of each rollout, paid at its last action.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> at_last_token(torch.tensor([1.0, 2.0]), make_batch(group=[0, 0], length=[2, 1])).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    last = (token_index(batch) == batch.lengths[batch.rollout, None] - 1) & batch.mask
    return x[batch.rollout, None] * last


def rollout_and_turn(batch: Batch) -> tuple[Int[Tensor, "A"], Int[Tensor, "A"]]:
    """Rollout and turn of every action, in order of rows and columns.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> rollout_and_turn(make_batch(group=[0, 0], length=[2, 1], turn=[[0, 1], [0, 0]]))
    (tensor([0, 0, 1]), tensor([0, 1, 0]))
    """
    return batch.rollout[:, None].expand_as(batch.mask)[batch.mask], batch.turn[batch.mask]


def scatter_tokens(x: Float[Tensor, "A"], batch: Batch) -> PerAction:
    """One number for every action, in order of rows and columns, back where the actions are.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> scatter_tokens(torch.tensor([1.0, 2.0, 3.0]), make_batch(group=[0, 0], length=[2, 1]))
    tensor([[1., 2.],
            [3., 0.]])
    """
    return x.new_zeros(batch.mask.shape).masked_scatter(batch.mask, x)


def _table_index(batch: Batch) -> tuple[Tensor, Tensor]:
    """Rollout of every action, and its place there."""
    return rollout_and_turn(batch)[0], token_index(batch)[batch.mask]
