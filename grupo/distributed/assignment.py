"""Which rank evaluates which rows of a batch; the same answer on every rank."""

from collections.abc import Sequence

import torch
from torch import Tensor

MAX_IMBALANCE = 1.1  # of the largest load of a rank and the mean, above which rows are moved


def balance_rows(microbatches: Sequence[Sequence[Tensor]], cost: Tensor) -> list[list[Tensor]]:
    """Move micro-batches between ranks, or parts of them, until the ranks have similar loads.

    Rows are best evaluated by the rank that generated them, which may have cached their
    activations, so as few as possible are moved.

    Args:
        microbatches: Row indices of the micro-batches, by rank.
        cost: The cost of each row of the batch, such as its number of actions, (N,).

    Returns:
        Row indices of the micro-batches, by rank.

    >>> from torch import tensor
    >>> balance_rows([[tensor([0, 1, 2, 3])], []], tensor([1, 1, 1, 1]))
    [[tensor([0, 1])], [tensor([2, 3])]]
    >>> balance_rows([[tensor([0])], [tensor([1])]], tensor([3, 5]))
    [[tensor([0])], [tensor([1])]]
    """
    balanced = [list(own) for own in microbatches]
    size = len(balanced)
    while True:
        loads = [sum(float(cost[rows].sum()) for rows in own) for own in balanced]
        mean = sum(loads) / size
        busiest = max(range(size), key=lambda rank: (loads[rank], -rank))
        idlest = min(range(size), key=lambda rank: (loads[rank], rank))
        if loads[busiest] <= MAX_IMBALANCE * mean:
            return balanced
        wanted = min(loads[busiest] - mean, mean - loads[idlest])
        moved = _take(balanced[busiest], cost, wanted, loads[busiest] - loads[idlest])
        if moved is None:
            return balanced
        balanced[idlest].append(moved)


def _take(own: list[Tensor], cost: Tensor, wanted: float, limit: float) -> Tensor | None:
    """Remove rows of about the wanted cost, below a limit; None if every row costs too much."""
    costs = [float(cost[rows].sum()) for rows in own]
    fitting = [i for i, x in enumerate(costs) if 0 < x <= wanted]
    if fitting:
        return own.pop(max(fitting, key=lambda i: costs[i]))
    i = max(range(len(own)), key=lambda i: costs[i])
    total = cost[own[i]].double().flip(0).cumsum(0)  # of the last rows
    distance = torch.where(total > 0, (total - wanted).abs(), torch.inf)
    count = int(distance.argmin()) + 1
    if float(total[count - 1]) >= limit:
        return None
    rows = own.pop(i)
    if count < len(rows):
        own.insert(i, rows[:-count])
    return rows[-count:]
