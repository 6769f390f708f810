"""DCPO: wider clips for rare tokens, advantages recall. Yang et al., 2025, arXiv:2509.02333."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import group_sum
from grupo.algo.losses import ClipWithin, DynamicClipBounds
from grupo.algo.ratios import CappedRatio
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DCPO: Dynamic Clipping Policy Optimization",
    use="Tasks recur, many groups agree with themselves, and rare tokens are clipped away.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class SmoothStandardise:
    """The smaller of two mixtures of x standardised in its group and in all the task's groups."""

    eps: float = 1e-6

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        new = chain(Center(), ScaleByStd(self.eps))(x, batch)
        i, mean, std = _history_statistics(x, batch)
        total = (x - mean) / (std + self.eps)
        a, b = ((i - 1) * new + total) / i, (new + (i - 1) * total) / i
        return torch.where(a.abs() < b.abs(), a, b)


def _history_statistics(x: Tensor, batch: Batch) -> Tensor:
    """How many groups the task had, their mean, their standard deviation; groups count alike."""
    found = x.new_zeros(3, int(batch.group.max()) + 1)
    for p in batch.group.unique().tolist():
        seen = [*map(x.new_tensor, batch.history[p].rewards), x[batch.group == p]]
        means = torch.stack([r.mean() for r in seen])
        within = torch.stack([((r - r.mean()) ** 2).sum() / max(len(r) - 1, 1) for r in seen])
        std = (within.mean() + means.var(correction=0)).sqrt()
        found[:, p] = torch.stack([x.new_tensor(len(seen)), means.mean(), std])
    return found[:, batch.group]


def dcpo_dynamic_clip(
    group_size: int = 16, clip_low: float = 0.16, clip_high: float = 0.2, cap: float = 10.0
) -> Method:
    """-min(r A, clip(r, lower(q), upper(q)) A), r at most `cap`, q the token's old probability.

    lower = (1 + sqrt(max(1 - 4 `clip_low` / q, 0))) / 2, upper = (1 + sqrt(1 + 4 `clip_high` / q)) / 2.
    A is the smaller of ((i - 1) A_new + A_total) / i and (A_new + (i - 1) A_total) / i at a task's
    i-th group; A_total is standardised by all its rewards so far, group by group.
    """
    # Constants of the authors' README (lime-RL/DCPO); their scripts clip at 0.2 and 0.28.
    loss = ClipWithin(DynamicClipBounds(clip_low, clip_high), CappedRatio(cap))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SmoothStandardise(),
        loss=loss,
        aggregation=group_sum,
    )
