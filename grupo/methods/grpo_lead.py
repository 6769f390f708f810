"""GRPO-LEAD: short answers and hard tasks earn more. Zhang and Zuo, 2025, arXiv:2504.09696."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="GRPO-LEAD: A Difficulty-Aware Reinforcement Learning Approach for Concise Mathematical "
    "Reasoning in Language Models",
    use="Tasks differ much in difficulty, and right answers should also be concise.",
    checked=("golden", "laws", "reference", "run"),
)


@piece
class ShortIfRight:
    """exp(-alpha z) if right (reward above 0), z its length standardised among the right, or -1."""

    alpha: float
    eps: float = 1e-6

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, length, n = (x > 0).to(x), batch.lengths, group_ops.sum((x > 0).to(x), batch.group)
        away = length - group_ops.sum(right * length, batch.group) / n.clamp(min=1)
        std = (group_ops.sum(right * away**2, batch.group) / (n - 1).clamp(min=1)).sqrt()
        return torch.where(x > 0, (-self.alpha * away / (std + self.eps)).exp(), -1.0)


@piece
class ByDifficulty:
    """x w(p) if x > 0, else x w(1 - p), with p the share of the group whose reward is above 0.

    w(p) = least + (most - least) / (1 + exp(steep (p - middle))).
    """

    least: float = 0.4
    most: float = 1.5
    middle: float = 0.75
    steep: float = 10.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = group_ops.mean((batch.reward > 0).to(x), batch.group)
        fall = torch.sigmoid(self.steep * (self.middle - torch.where(x > 0, p, 1 - p)))
        return x * (self.least + (self.most - self.least) * fall)


def grpo_lead(group: int = 8, alpha: float = 0.05, clip: float = 0.2) -> Method:
    """GRPO on r = exp(-`alpha` z) or -1, its A weighed by the logistic w for difficulty."""
    # Constants are the authors' code's, which spares short and boxless answers. G is our choice.
    credit = chain(ShortIfRight(alpha), Center(), ScaleByStd(), ByDifficulty())
    return Method(sample=Independent(group), credit=credit, loss=Clip(clip, clip), weigh=token_mean)
