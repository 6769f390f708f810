"""E-GRPO: a wrong answer earns by the entities it found. Zhao et al., 2025, arXiv:2510.24694."""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo.advantages import Center, MaskAdvantage, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Repurposing Synthetic Data for Fine-grained Search Agent Supervision",
    use="Questions were made from entities that are known, and most groups are all wrong.",
    checked=("golden", "laws", "run"),
    catalogue=("e-grpo-entity",),
)


@component
class EntityReward:
    """r = 1 right, `weight` m / max m wrong, 0 malformed or overlong; m the share found."""

    entity_coef: float
    required_reward_terms = ("correct", "entities", "format", "overlong")  # a yes is above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, m, good, overlong = (batch.reward_terms[name] for name in self.required_reward_terms)
        most = group_ops.max(m, batch.group)
        r = torch.where(right > 0.5, 1.0, self.entity_coef * m / torch.where(most > 0, most, 1.0))
        return r * ((good > 0.5) & (overlong <= 0.5))


def is_not_overlong(batch: Batch) -> Bool[Tensor, "R"]:
    """Who was not cut off for length."""
    return batch.reward_terms["overlong"] <= 0.5


def e_grpo(
    group_size: int = 8, entity_coef: float = 0.3, clip_low: float = 0.2, clip_high: float = 0.28
) -> Method:
    """A = (r - mean(r)) / std(r), r of `EntityReward`; the overlong count in both and do not learn.

    parts: "correct", "entities" (the share that `rewards.closeness.found` in the thoughts, not in
    what tools return), "format", "overlong": out of tokens or tool calls (eq. 4 to 6).
    """
    # `weight` 0.3 is the paper's best; clip-higher without its numbers: DAPO's. Group: our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=MaskAdvantage(
            chain(EntityReward(entity_coef), Center(), ScaleByStd()), is_not_overlong
        ),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )
