"""Reductions over the rollouts of a group, answered to each rollout.

Every function takes values `x` (R,) and their `group` (R,) and returns (R,), so that formulas read
as the papers write them: `x - mean(x, group)`. Any labelling will do, of rows too.
"""

import builtins

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PerRollout = Float[Tensor, "R"]
Label = Int[Tensor, "R"]


def count(x: PerRollout, group: Label) -> PerRollout:
    """How many rollouts the group has."""
    return sum(torch.ones_like(x), group)


def sum(x: PerRollout, group: Label) -> PerRollout:
    """Sum over the group."""
    return x.new_zeros(_num_groups(group)).index_add(0, group, x)[group]


def mean(x: PerRollout, group: Label) -> PerRollout:
    """Mean over the group.

    >>> mean(torch.tensor([1.0, 0.0, 5.0]), torch.tensor([0, 0, 1]))
    tensor([0.5000, 0.5000, 5.0000])
    """
    return sum(x, group) / count(x, group)


def leave_one_out_mean(x: PerRollout, group: Label) -> PerRollout:
    """Mean of the other rollouts of the group; a group of one is its own mean."""
    others = count(x, group) - 1
    return torch.where(others > 0, (sum(x, group) - x) / others.clamp(min=1), x)


def mean_where(keep: Bool[Tensor, "R"], x: PerRollout, group: Label) -> PerRollout:
    """Mean of x over those of the group that `keep` holds for, 0 where there are none.

    >>> right = torch.tensor([True, True, False])
    >>> mean_where(right, torch.tensor([1.0, 3.0, 8.0]), torch.tensor([0, 0, 0]))
    tensor([2., 2., 2.])
    """
    kept = keep.to(x)
    return sum(x * kept, group) / sum(kept, group).clamp(min=1)


def var(x: PerRollout, group: Label) -> PerRollout:
    """Unbiased variance within the group, divided by n - 1; 0 for a group of one."""
    return sum((x - mean(x, group)) ** 2, group) / (count(x, group) - 1).clamp(min=1)


def std(x: PerRollout, group: Label) -> PerRollout:
    """Unbiased standard deviation within the group; 0 for a group of one."""
    return var(x, group).sqrt()


def population_std(x: PerRollout, group: Label) -> PerRollout:
    """Standard deviation within the group, divided by n."""
    return mean((x - mean(x, group)) ** 2, group).sqrt()


def zscore(x: PerRollout, group: Label) -> PerRollout:
    """(x - mean) / (std + 1e-6) within the group."""
    return (x - mean(x, group)) / (std(x, group) + 1e-6)


def max(x: PerRollout, group: Label) -> PerRollout:
    """Greatest value of the group."""
    return x.new_zeros(_num_groups(group)).scatter_reduce(0, group, x, "amax", include_self=False)[
        group
    ]


def min(x: PerRollout, group: Label) -> PerRollout:
    """Smallest value of the group."""
    return -max(-x, group)


def median(x: PerRollout, group: Label) -> PerRollout:
    """Midpoint median of the group.

    >>> median(torch.tensor([1.0, 2.0, 4.0, 9.0]), torch.tensor([0, 0, 0, 0]))
    tensor([3., 3., 3., 3.])
    """
    middle = x.new_zeros(_num_groups(group))
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
    return below + (count_equal(x, group) - 1) / 2


def count_equal(x: PerRollout, group: Label) -> PerRollout:
    """How many of the group have the same value, oneself included.

    >>> count_equal(torch.tensor([7.0, 3.0, 7.0]), torch.tensor([0, 0, 0]))
    tensor([2., 1., 2.])
    """
    same = group[:, None] == group[None]
    return (same & (x[None] == x[:, None])).sum(1).to(x)


def entropy(x: PerRollout, group: Label) -> PerRollout:
    """Entropy in nats of the values of the group: -sum over values v of p_v ln p_v, p_v its share.

    >>> entropy(torch.tensor([7.0, 3.0, 7.0, 3.0]), torch.tensor([0, 0, 0, 0]))
    tensor([0.6931, 0.6931, 0.6931, 0.6931])
    """
    return -mean((count_equal(x, group) / count(x, group)).log(), group)


def lowest_share(
    x: PerRollout, n: Tensor | int | float, group: Label, weight: PerRollout | None = None
) -> PerRollout:
    """How much of each is among the lowest of the group, that weigh `n` together; equals share.

    >>> lowest_share(torch.tensor([1.0, 5.0, 5.0, 9.0]), 2, torch.tensor([0, 0, 0, 0]))
    tensor([1.0000, 0.5000, 0.5000, 0.0000])
    """
    weight = torch.ones_like(x) if weight is None else weight
    place, label = torch.stack([group.to(x), x], 1).unique(dim=0, return_inverse=True)
    held = weight.new_zeros(len(place)).index_add(0, label, weight)
    below = (held.cumsum(0) - held)[label]
    below = below - min(below, group)  # of the group's own alone
    return ((n - below) / held[label].clamp(min=1e-12)).clamp(0, 1)


def max_variance_share(x: PerRollout, n: int, group: Label) -> PerRollout:
    """How much of each is among the n of the group of greatest variance; equals share.

    They are the k highest and the n - k lowest for some k, of several the greatest.

    >>> max_variance_share(torch.tensor([2.0, 1.0, 0.0, -1.0, -2.0]), 3, torch.tensor([0, 0, 0, 0, 0]))
    tensor([1., 1., 0., 0., 1.])
    """
    x, size = x.round(decimals=9), count(x, group).clamp(max=n)
    k = torch.zeros_like(x)
    for label in group.unique():
        k[group == label] = _num_highest_of_max_variance(x[group == label], n)
    return lowest_share(-x, k, group) + lowest_share(x, size - k, group)


def logsumexp(x: PerRollout, group: Label) -> PerRollout:
    """Log sum exp over the group; -inf where the whole group is -inf."""
    top = max(x.detach(), group)
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    return top + sum((x - top).exp(), group).log()


def _num_groups(group: Label) -> int:
    return int(group.max()) + 1 if group.numel() else 0


def _num_highest_of_max_variance(x: Float[Tensor, "n"], n: int) -> int:
    """How many of the n of x of greatest variance are the highest."""
    n = builtins.min(n, len(x))
    k, ranked = torch.arange(n + 1), x.sort().values
    sums = torch.nn.functional.pad(torch.stack([ranked, ranked**2]).cumsum(1), (1, 0))
    ends = sums[:, n - k] + sums[:, -1:] - sums[:, len(x) - k]
    mean, square = ends / n  # of the k highest and the n - k lowest
    var = square - mean**2
    return int((var >= var.max() - 1e-9).nonzero().max())
