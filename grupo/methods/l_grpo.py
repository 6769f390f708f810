"""L-GRPO: brevity counts only where everyone is right. Song and Zheng, 2025, arXiv:2505.21178."""

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
    title="Walk Before You Run! Concise LLM Reasoning via Reinforcement Learning",
    use="A policy that already reasons well shall say it in fewer words, at no cost in accuracy.",
    checked=("golden", "laws", "run"),
    example="l_grpo(max_length=64)",
    catalogue=("conciser-l-grpo",),
)


@component
class BrevityWhenAllCorrect:
    """r + weight (1 - L / limit) in groups all of whose rollouts are correct, else r."""

    max_length: int
    length_coef: float

    required_reward_terms = ("correct",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        left = 1 - batch.lengths / self.max_length
        all_right = group_ops.min(batch.reward_terms["correct"], batch.group) > 0.5
        return torch.where(all_right, x + self.length_coef * left, x)


def l_grpo(
    max_length: int,
    group_size: int = 8,
    length_coef: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> Method:
    """GRPO with clip-higher and token mean; r = 1 + `length_coef` (1 - L / `max_length`) if all are right.

    The second stage of ConciseR: dapo without its penalty is the first. Groups that are all right
    must be kept here.
    """
    # Only the abstract and a review were seen: length counts once all rollouts are right. The form
    # of the bonus, the share of `max_length` that is left, and every number are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(BrevityWhenAllCorrect(max_length, length_coef), Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )
