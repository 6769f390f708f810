"""Risk: what counts is the lower tail of scores, of several tasks together."""

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.core import group_ops
from grupo.core.batch import Batch


def bundle_scores(x: Tensor, batch: Batch, bundle_size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Exam papers, one rollout each of `size` tasks: their scores, their bundles, who is in which.

    A bundle is `size` groups; its i-th paper has the i-th rollout of each. The last bits of log pi
    shuffle. RiskPO, Ren et al. (arXiv:2510.00911).

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 1], reward=[1.0, 0.0])
    >>> [x.tolist() for x in bundle_scores(batch.reward, batch, bundle_size=2)]
    [[1.0], [0], [0, 0]]
    """
    bits = (sum_per_rollout(batch.old_logp.to(x), batch) * 1e6).frac()
    order = bits.argsort(stable=True).argsort().to(x)  # who is equal is the same rollout again
    bundle = group_ops.min(order, batch.group).unique(return_inverse=True)[1] // bundle_size
    place = torch.stack([bundle.to(x), group_ops.rank(order, batch.group)], dim=1)
    each, paper = place.unique(dim=0, return_inverse=True)
    full = bundle_size * group_ops.mean(
        x, paper
    )  # one with fewer tasks counts as if it had them all
    return torch.zeros_like(each[:, 0]).scatter(0, paper, full), each[:, 0].long(), paper


def mixed_risk(
    scores: Tensor, thresholds: Sequence[float], levels: Sequence[float], weight: float
) -> Tensor:
    """(weight CVaR + RVaR) / (weight + 1) of scores S, thresholds q and Q at levels low and high.

    RVaR = (max(S - q, 0) - max(S - Q, 0) + q - Q) / (high - low), CVaR = min(S - q, 0) / low.

    >>> mixed_risk(torch.tensor([0.0, 3.0]), thresholds=(1.0, 3.0), levels=(0.5, 1.0), weight=1.0)
    tensor([-3.,  0.])
    """
    S, (q, Q), (low, high) = scores, thresholds, levels
    rvar = ((S - q).clamp(min=0) - (S - Q).clamp(min=0) + q - Q) / (high - low)
    return (weight * (S - q).clamp(max=0) / low + rvar) / (weight + 1)


def track_quantile(scores: Tensor, level: float, previous: float, rate: float = 0.1) -> float:
    """A quantile that is followed: q + rate (level - share below q); -inf before: the scores' own.

    >>> track_quantile(torch.tensor([0.0, 2.0]), level=0.25, previous=1.0)
    0.975
    """
    if previous == -inf:
        return float(scores.quantile(level))
    return previous + rate * (level - float(scores.lt(previous).to(scores).mean()))


def std_or_one(x: Tensor, label: Tensor) -> Tensor:
    """The standard deviation among those of one label; 1 in place of what is nearly 0.

    >>> std_or_one(torch.tensor([1.0, 1.0]), torch.tensor([0, 0]))
    tensor([1., 1.])
    """
    std = group_ops.std(x, label)
    return torch.where(std > 1e-3, std, 1.0)
