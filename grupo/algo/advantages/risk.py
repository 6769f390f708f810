"""Risk-sensitive scores: the lower tail of the scores of bundles of tasks.

Source: RiskPO, Ren et al., arXiv:2510.00911.
"""

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.core import group_ops
from grupo.core.batch import Batch


def bundle_scores(x: Tensor, batch: Batch, bundle_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Score sets of rollouts, one from each of `bundle_size` groups, by the sum of their rewards.

    A bundle is `bundle_size` groups; its i-th set contains the i-th rollout of each. Groups and
    rollouts are shuffled by the low bits of log pi_old, so the result does not depend on order.
    Source: RiskPO, Ren et al., arXiv:2510.00911.

    Args:
        x: rewards, (R,).
        batch: provides groups and log-probabilities.
        bundle_size: groups per bundle.

    Returns:
        The score of each set (S,), the bundle of each set (S,), the set of each rollout (R,).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 1], reward=[1.0, 0.0])
    >>> [x.tolist() for x in bundle_scores(batch.reward, batch, bundle_size=2)]
    [[1.0], [0], [0, 0]]
    """
    bits = (sum_per_rollout(batch.old_logp.to(x), batch) * 1e6).frac()
    order = bits.argsort(stable=True).argsort().to(x)  # equal bits: the same rollout again
    bundle = group_ops.min(order, batch.group).unique(return_inverse=True)[1] // bundle_size
    place = torch.stack([bundle.to(x), group_ops.rank(order, batch.group)], dim=1)
    sets, set_index = place.unique(dim=0, return_inverse=True)
    # mean x size: an incomplete set counts as if it had all its tasks
    total = bundle_size * group_ops.mean(x, set_index)
    scores = torch.zeros_like(sets[:, 0]).scatter(0, set_index, total)
    return scores, sets[:, 0].long(), set_index


def mixed_risk(
    scores: Tensor, thresholds: Sequence[float], levels: Sequence[float], weight: float
) -> Tensor:
    """(weight CVaR + RVaR) / (weight + 1): the conditional and the range value-at-risk of scores S.

    CVaR = min(S - q, 0) / low, RVaR = (max(S - q, 0) - max(S - Q, 0) + q - Q) / (high - low).

    Args:
        scores: S, any shape; the result has the same.
        thresholds: the quantiles q and Q of the scores.
        levels: their levels low and high, in (0, 1].
        weight: weight of the lower tail.

    >>> mixed_risk(torch.tensor([0.0, 3.0]), thresholds=(1.0, 3.0), levels=(0.5, 1.0), weight=1.0)
    tensor([-3.,  0.])
    """
    S = scores
    q, Q = thresholds
    low, high = levels
    rvar = ((S - q).clamp(min=0) - (S - Q).clamp(min=0) + q - Q) / (high - low)
    return (weight * (S - q).clamp(max=0) / low + rvar) / (weight + 1)


def track_quantile(scores: Tensor, level: float, previous: float, rate: float = 0.1) -> float:
    """Online quantile: q + rate (level - fraction of scores below q).

    Args:
        scores: new scores, (n,).
        level: level of the quantile, in [0, 1].
        previous: q before; -inf starts with the quantile of `scores`. Without scores q stays.
        rate: step size, in units of the scores.

    >>> track_quantile(torch.tensor([0.0, 2.0]), level=0.25, previous=1.0)
    0.975
    """
    if not len(scores):
        return previous
    if previous == -inf:
        return float(scores.quantile(level))
    return previous + rate * (level - float(scores.lt(previous).to(scores).mean()))


def std_or_one(x: Tensor, label: Tensor) -> Tensor:
    """Unbiased standard deviation within each label, (n,); 1 where it is at most 1e-3.

    >>> std_or_one(torch.tensor([1.0, 1.0]), torch.tensor([0, 0]))
    tensor([1., 1.])
    """
    std = group_ops.std(x, label)
    return torch.where(std > 1e-3, std, 1.0)
