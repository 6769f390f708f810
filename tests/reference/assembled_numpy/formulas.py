"""Formulas that many papers share."""

import numpy as np

Array = np.ndarray


def stop_gradient(x: Array) -> Array:
    """x as a constant."""
    return np.real(x)


def magnitude(x: Array) -> Array:
    """|x| with its derivative: `np.abs` of a complex number is another thing."""
    return np.where(np.real(x) < 0, -x, x)


def clip(x: Array, low: float | Array, high: float | Array) -> Array:
    """x within bounds; constant beyond them."""
    return np.where(np.real(x) < low, low, np.where(np.real(x) > high, high, x))


def minimum(x: Array, y: Array) -> Array:
    """The smaller of two numbers."""
    return np.where(np.real(x) <= np.real(y), x, y)


def maximum(x: Array, y: Array) -> Array:
    """The larger of two numbers."""
    return np.where(np.real(x) >= np.real(y), x, y)


def group_mean(x: Array, group: Array) -> Array:
    """Mean over each rollout's group (N,)."""
    return np.array([x[group == g].mean() for g in group])


def group_std(x: Array, group: Array, ddof: int = 1) -> Array:
    """Standard deviation within each rollout's group (N,); 0 for a group of one rollout."""
    sizes = {g: (group == g).sum() for g in group}
    return np.array([x[group == g].std(ddof=ddof) if sizes[g] > ddof else 0.0 for g in group])


def z_score(x: Array, group: Array, ddof: int = 1, eps: float = 1e-6) -> Array:
    """(x - mean) / (std + eps) over each rollout's group: the advantage of GRPO (N,)."""
    return (x - group_mean(x, group)) / (group_std(x, group, ddof) + eps)


def clipped_surrogate(ratio: Array, advantage: Array, low: float, high: float) -> Array:
    """-min(R A, clip(R, 1 - low, 1 + high) A): the loss of PPO for each action."""
    return -minimum(ratio * advantage, clip(ratio, 1 - low, 1 + high) * advantage)


def k3(logp: Array, ref_logp: Array) -> Array:
    """ref / pi - log(ref / pi) - 1: the estimator of KL(pi || ref) in GRPO."""
    difference = ref_logp - logp
    return np.exp(difference) - difference - 1


def row_sum(x: Array, mask: Array) -> Array:
    """The sum over each row's actions (N,)."""
    return (x * mask).sum(1)


def row_mean(x: Array, mask: Array) -> Array:
    """The mean over each row's actions (N,)."""
    return row_sum(x, mask) / mask.sum(1)


def mean_of_row_means(x: Array, mask: Array) -> complex:
    """The mean over rows of each row's mean over its actions."""
    return np.mean(row_mean(x, mask))


def token_mean(x: Array, mask: Array) -> complex:
    """The mean over all actions of the minibatch."""
    return (x * mask).sum() / mask.sum()


def mean_where(x: Array, mask: Array) -> complex:
    """The mean over the actions in `mask`, 0 if there is none."""
    return (x * mask).sum() / max(mask.sum(), 1)


def mean_of_row_sums(x: Array, mask: Array) -> complex:
    """The mean over rows of each row's sum."""
    return np.mean(row_sum(x, mask))
