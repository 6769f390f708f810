"""GRPO-LEAD: short answers and hard tasks earn more. Zhang and Zuo, 2025, arXiv:2504.09696."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="GRPO-LEAD: A Difficulty-Aware Reinforcement Learning Approach for Concise Mathematical "
    "Reasoning in Language Models",
    use="Tasks differ much in difficulty, and right answers should also be concise.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class ShortCorrectReward:
    """exp(-alpha z) if right (reward above 0), z its length standardised among the right, or -1."""

    length_coef: float
    eps: float = 1e-6

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, length, n = (x > 0).to(x), batch.lengths, group_ops.sum((x > 0).to(x), batch.group)
        away = length - group_ops.sum(right * length, batch.group) / n.clamp(min=1)
        std = (group_ops.sum(right * away**2, batch.group) / (n - 1).clamp(min=1)).sqrt()
        return torch.where(x > 0, (-self.length_coef * away / (std + self.eps)).exp(), -1.0)


@component
class DifficultyWeight:
    """x w(p) if x > 0, else x w(1 - p), with p the share of the group whose reward is above 0.

    w(p) = least + (most - least) / (1 + exp(steep (p - middle))).
    """

    min_weight: float = 0.4
    max_weight: float = 1.5
    midpoint: float = 0.75
    slope: float = 10.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = group_ops.mean((batch.reward > 0).to(x), batch.group)
        fall = torch.sigmoid(self.slope * (self.midpoint - torch.where(x > 0, p, 1 - p)))
        return x * (self.min_weight + (self.max_weight - self.min_weight) * fall)


def grpo_lead(group_size: int = 8, length_coef: float = 0.05, clip_eps: float = 0.2) -> Method:
    """GRPO on r = exp(-`alpha` z) or -1, its A weighed by the logistic w for difficulty."""
    # Constants are the authors' code's, which spares short and boxless answers. G is our choice.
    credit = chain(ShortCorrectReward(length_coef), Center(), ScaleByStd(), DifficultyWeight())
    return Method(
        sampler=GroupSampler(group_size),
        advantage=credit,
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )
