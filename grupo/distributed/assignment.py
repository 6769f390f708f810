"""Which rank evaluates which rows of a batch; the same answer on every rank."""

from collections.abc import Sequence

import torch
from torch import Tensor

MAX_IMBALANCE = 1.1  # of the largest load of a rank and the mean, above which pieces are split
PIECES_PER_RANK = 4  # at most: many small pieces cost more than they balance


def rows_of_ranks(pieces: Sequence[Tensor], cost: Tensor, size: int) -> list[list[Tensor]]:
    """Assign micro-batches to ranks, splitting large ones until the ranks have similar loads.

    Args:
        pieces: Row indices of each micro-batch.
        cost: The cost of each row of the batch, such as its number of actions, (N,).
        size: The number of ranks.

    Returns:
        The row indices of the micro-batches of each rank, by rank.

    >>> rows_of_ranks([torch.tensor([0, 1, 2, 3])], torch.tensor([1, 1, 1, 1]), 2)
    [[tensor([0, 1])], [tensor([2, 3])]]
    >>> rows_of_ranks([torch.tensor([0]), torch.tensor([1])], torch.tensor([3, 5]), 1)
    [[tensor([0]), tensor([1])]]
    """
    if size == 1:
        return [list(pieces)]
    pieces = list(pieces)
    while True:
        ranks, loads = _assign([float(cost[rows].sum()) for rows in pieces], size)
        largest = max(range(len(pieces)), key=lambda i: len(pieces[i]), default=0)
        is_balanced = max(loads) <= MAX_IMBALANCE * sum(loads) / size
        if is_balanced or len(pieces) >= PIECES_PER_RANK * size or len(pieces[largest]) < 2:
            return [[p for p, r in zip(pieces, ranks, strict=True) if r == k] for k in range(size)]
        pieces[largest : largest + 1] = _halves(pieces[largest], cost)


def _assign(costs: Sequence[float], size: int) -> tuple[list[int], list[float]]:
    """The rank of each piece, the costliest first to the rank with the smallest load; the loads."""
    loads = [0.0] * size
    ranks = [0] * len(costs)
    for i in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        ranks[i] = min(range(size), key=lambda rank: (loads[rank], rank))
        loads[ranks[i]] += costs[i]
    return ranks, loads


def _halves(rows: Tensor, cost: Tensor) -> list[Tensor]:
    """The rows in two parts of similar cost, none of them empty."""
    total = cost[rows].cumsum(0).double()
    middle = int(torch.searchsorted(total, total[-1] / 2)) + 1
    middle = min(max(middle, 1), len(rows) - 1)
    return [rows[:middle], rows[middle:]]
