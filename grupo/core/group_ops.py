"""Reductions over groups: each rollout gets the result of its group.

Every function takes values `x` (R,) and the `group` of each (R,) and returns (R,), so that formulas
read as in the papers: `x - mean(x, group)`. Any integer labels work, also labels of rows.
"""

import builtins

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.util.ordered_sums import sum_by_index

PerRollout = Float[Tensor, "R"]
Label = Int[Tensor, "R"]


def count(x: PerRollout, group: Label) -> PerRollout:
    """Number of rollouts in the group."""
    return sum(torch.ones_like(x), group)


def sum(x: PerRollout, group: Label) -> PerRollout:
    """Sum over the group."""
    return sum_by_index(x, group, _num_groups(group))[group]


def mean(x: PerRollout, group: Label) -> PerRollout:
    """Mean over the group.

    >>> mean(torch.tensor([1.0, 0.0, 5.0]), torch.tensor([0, 0, 1]))
    tensor([0.5000, 0.5000, 5.0000])
    """
    return sum(x, group) / count(x, group)


def leave_one_out_mean(x: PerRollout, group: Label) -> PerRollout:
    """Mean over the other rollouts of the group; in a group of one, the value itself.

    >>> leave_one_out_mean(torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 0, 0]))
    tensor([4.0000, 3.5000, 1.5000])
    """
    others = count(x, group) - 1
    return torch.where(others > 0, (sum(x, group) - x) / others.clamp(min=1), x)


def mean_where(keep: Bool[Tensor, "R"], x: PerRollout, group: Label) -> PerRollout:
    """Mean over the rollouts of the group with `keep`; 0 if there are none.

    >>> correct = torch.tensor([True, True, False])
    >>> mean_where(correct, torch.tensor([1.0, 3.0, 8.0]), torch.tensor([0, 0, 0]))
    tensor([2., 2., 2.])
    """
    weight = keep.to(x)
    return sum(x * weight, group) / sum(weight, group).clamp(min=1)


def var(x: PerRollout, group: Label) -> PerRollout:
    """Unbiased variance within the group (divided by n - 1); 0 for a group of one."""
    return sum((x - mean(x, group)) ** 2, group) / (count(x, group) - 1).clamp(min=1)


def std(x: PerRollout, group: Label) -> PerRollout:
    """Unbiased standard deviation within the group; 0 for a group of one."""
    return var(x, group).sqrt()


def population_std(x: PerRollout, group: Label) -> PerRollout:
    """Population standard deviation within the group (divided by n)."""
    return mean((x - mean(x, group)) ** 2, group).sqrt()


def zscore(x: PerRollout, group: Label) -> PerRollout:
    """(x - mean) / (std + 1e-6) within the group."""
    return (x - mean(x, group)) / (std(x, group) + 1e-6)


def max(x: PerRollout, group: Label) -> PerRollout:
    """Largest value of the group."""
    empty = x.new_zeros(_num_groups(group))
    return empty.scatter_reduce(0, group, x, "amax", include_self=False)[group]


def min(x: PerRollout, group: Label) -> PerRollout:
    """Smallest value of the group."""
    return -max(-x, group)


def median(x: PerRollout, group: Label) -> PerRollout:
    """Median of the group; the midpoint of the two middle values if their number is even.

    >>> median(torch.tensor([1.0, 2.0, 4.0, 9.0]), torch.tensor([0, 0, 0, 0]))
    tensor([3., 3., 3., 3.])
    """
    medians = x.new_zeros(_num_groups(group))
    for label in group.unique():
        medians[label] = x[group == label].quantile(0.5)
    return medians[group]


def rank(x: PerRollout, group: Label) -> PerRollout:
    """Rank within the group, 0 for the smallest; equal values share their mean rank.

    >>> rank(torch.tensor([0.5, 3.0, 0.5]), torch.tensor([0, 0, 0]))
    tensor([0.5000, 2.0000, 0.5000])
    """
    same_group = group[:, None] == group[None]
    num_smaller = (same_group & (x[None] < x[:, None])).sum(1)
    return num_smaller + (count_equal(x, group) - 1) / 2


def count_equal(x: PerRollout, group: Label) -> PerRollout:
    """Number of rollouts of the group with the same value, the rollout itself included.

    >>> count_equal(torch.tensor([7.0, 3.0, 7.0]), torch.tensor([0, 0, 0]))
    tensor([2., 1., 2.])
    """
    same_group = group[:, None] == group[None]
    return (same_group & (x[None] == x[:, None])).sum(1).to(x)


def entropy(x: PerRollout, group: Label) -> PerRollout:
    """Entropy of the group's values in nats: -sum_v p_v ln p_v, p_v the frequency of value v.

    >>> entropy(torch.tensor([7.0, 3.0, 7.0, 3.0]), torch.tensor([0, 0, 0, 0]))
    tensor([0.6931, 0.6931, 0.6931, 0.6931])
    """
    return -mean((count_equal(x, group) / count(x, group)).log(), group)


def lowest_share(
    x: PerRollout, n: Tensor | int | float, group: Label, weight: PerRollout | None = None
) -> PerRollout:
    """Fraction, 0 to 1, by which each rollout belongs to the `n` lowest of its group.

    Equal values share the remaining places equally.

    Args:
        x: Values to rank.
        n: Number of lowest rollouts, or their total weight; may differ by rollout.
        group: Group of each rollout.
        weight: Weight of each rollout; 1 by default.

    >>> lowest_share(torch.tensor([1.0, 5.0, 5.0, 9.0]), 2, torch.tensor([0, 0, 0, 0]))
    tensor([1.0000, 0.5000, 0.5000, 0.0000])
    """
    weight = torch.ones_like(x) if weight is None else weight
    values, label = torch.stack([group.to(x), x], 1).unique(dim=0, return_inverse=True)
    weight_of_value = weight.new_zeros(len(values)).index_add(0, label, weight)
    below = (weight_of_value.cumsum(0) - weight_of_value)[label]
    below = below - min(below, group)  # only within the group
    return ((n - below) / weight_of_value[label].clamp(min=1e-12)).clamp(0, 1)


def max_variance_share(x: PerRollout, n: int, group: Label) -> PerRollout:
    """Fraction, 0 to 1, by which each rollout belongs to the n of its group with most variance.

    These n rollouts are the k highest and the n - k lowest ones. k maximises the variance; if
    several k do, the largest one is taken. Equal values share the remaining places equally.

    >>> x = torch.tensor([2.0, 1.0, 0.0, -1.0, -2.0])
    >>> max_variance_share(x, 3, torch.tensor([0, 0, 0, 0, 0]))
    tensor([1., 1., 0., 0., 1.])
    """
    x = x.round(decimals=9)
    size = count(x, group).clamp(max=n)
    k = torch.zeros_like(x)
    for label in group.unique():
        k[group == label] = _num_highest_of_max_variance(x[group == label], n)
    return lowest_share(-x, k, group) + lowest_share(x, size - k, group)


def logsumexp(x: PerRollout, group: Label) -> PerRollout:
    """Log of the sum of exponentials over the group; -inf if all its values are -inf."""
    top = max(x.detach(), group)
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    return top + sum((x - top).exp(), group).log()


def _num_groups(group: Label) -> int:
    return int(group.max()) + 1 if group.numel() else 0


def _num_highest_of_max_variance(x: Float[Tensor, "n"], n: int) -> int:
    """The k for which the k highest and the n - k lowest values have the largest variance."""
    n = builtins.min(n, len(x))
    k = torch.arange(n + 1)
    ranked = x.sort().values
    prefix_sums = torch.stack([ranked, ranked**2]).cumsum(1)
    sums = torch.nn.functional.pad(prefix_sums, (1, 0))
    sums_of_chosen = sums[:, n - k] + sums[:, -1:] - sums[:, len(x) - k]
    mean, mean_square = sums_of_chosen / n  # of the k highest and the n - k lowest
    var = mean_square - mean**2
    return int((var >= var.max() - 1e-9).nonzero().max())
