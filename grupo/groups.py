"""Reductions over the rollouts of a group, answered to each rollout.

Every function takes values `x` (R,) and their `group` (R,) and returns (R,), so that formulas read
as the papers write them: `x - mean(x, group)`. Any labelling will do, of rows too.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

PerRollout = Float[Tensor, "R"]
Label = Int[Tensor, "R"]


def count(x: PerRollout, group: Label) -> PerRollout:
    """How many rollouts the group has."""
    return sum(torch.ones_like(x), group)


def sum(x: PerRollout, group: Label) -> PerRollout:
    """Sum over the group."""
    return x.new_zeros(_size(group)).index_add(0, group, x)[group]


def mean(x: PerRollout, group: Label) -> PerRollout:
    """Mean over the group.

    >>> mean(torch.tensor([1.0, 0.0, 5.0]), torch.tensor([0, 0, 1]))
    tensor([0.5000, 0.5000, 5.0000])
    """
    return sum(x, group) / count(x, group)


def mean_of_others(x: PerRollout, group: Label) -> PerRollout:
    """Mean of the other rollouts of the group; a group of one is its own mean."""
    others = count(x, group) - 1
    return torch.where(others > 0, (sum(x, group) - x) / others.clamp(min=1), x)


def var(x: PerRollout, group: Label) -> PerRollout:
    """Unbiased variance within the group, divided by n - 1; 0 for a group of one."""
    return sum((x - mean(x, group)) ** 2, group) / (count(x, group) - 1).clamp(min=1)


def std(x: PerRollout, group: Label) -> PerRollout:
    """Unbiased standard deviation within the group; 0 for a group of one."""
    return var(x, group).sqrt()


def population_std(x: PerRollout, group: Label) -> PerRollout:
    """Standard deviation within the group, divided by n."""
    return mean((x - mean(x, group)) ** 2, group).sqrt()


def max(x: PerRollout, group: Label) -> PerRollout:
    """Greatest value of the group."""
    return x.new_zeros(_size(group)).scatter_reduce(0, group, x, "amax", include_self=False)[group]


def min(x: PerRollout, group: Label) -> PerRollout:
    """Smallest value of the group."""
    return -max(-x, group)


def median(x: PerRollout, group: Label) -> PerRollout:
    """Midpoint median of the group.

    >>> median(torch.tensor([1.0, 2.0, 4.0, 9.0]), torch.tensor([0, 0, 0, 0]))
    tensor([3., 3., 3., 3.])
    """
    middle = x.new_zeros(_size(group))
    for label in group.unique():
        middle[label] = x[group == label].quantile(0.5)
    return middle[group]


def rank(x: PerRollout, group: Label) -> PerRollout:
    """Place within the group, 0 for the smallest; those who are equal share their mean place.

    >>> rank(torch.tensor([0.5, 3.0, 0.5]), torch.tensor([0, 0, 0]))
    tensor([0.5000, 2.0000, 0.5000])
    """
    same = group[:, None] == group[None]
    below = (same & (x[None] < x[:, None])).sum(1)
    tied = (same & (x[None] == x[:, None])).sum(1)
    return (below + (tied - 1) / 2).to(x)


def logsumexp(x: PerRollout, group: Label) -> PerRollout:
    """Log sum exp over the group; -inf where the whole group is -inf."""
    top = max(x.detach(), group)
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    return top + sum((x - top).exp(), group).log()


def _size(group: Label) -> int:
    return int(group.max()) + 1 if group.numel() else 0
