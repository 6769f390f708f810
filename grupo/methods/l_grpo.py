"""L-GRPO: brevity counts only where everyone is right. Song and Zheng, 2025, arXiv:2505.21178."""

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
    title="Walk Before You Run! Concise LLM Reasoning via Reinforcement Learning",
    use="A policy that already reasons well shall say it in fewer words, at no cost in accuracy.",
    checked=("golden", "laws", "run"),
    example="l_grpo(limit=64)",
    catalogue=("conciser-l-grpo",),
)


@piece
class ShortWhenAllRight:
    """r + weight (1 - L / limit) in groups all of whose rollouts are correct, else r."""

    limit: int
    weight: float

    reads_parts = ("correct",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        left = 1 - batch.lengths / self.limit
        all_right = group_ops.min(batch.parts["correct"], batch.group) > 0.5
        return torch.where(all_right, x + self.weight * left, x)


def l_grpo(
    limit: int, group: int = 8, weight: float = 1.0, low: float = 0.2, high: float = 0.28
) -> Method:
    """GRPO with clip-higher and token mean; r = 1 + `weight` (1 - L / `limit`) if all are right.

    The second stage of ConciseR: dapo without its penalty is the first. Groups that are all right
    must be kept here.
    """
    # Only the abstract and a review were seen: length counts once all rollouts are right. The form
    # of the bonus, the share of `limit` that is left, and every number are our choice.
    return Method(
        sample=Independent(group),
        credit=chain(ShortWhenAllRight(limit, weight), Center(), ScaleByStd()),
        loss=Clip(low, high),
        weigh=token_mean,
    )
