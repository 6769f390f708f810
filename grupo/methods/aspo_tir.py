"""ASPO for tools: early tool calls are favoured. Lin and Xu, 2025, arXiv:2508.19201."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Understanding Tool-Integrated Reasoning",
    use="The policy calls its tool only to check what it already worked out.",
    checked=("golden", "laws", "run"),
    catalogue=("aspo-tir",),
)


@component
class EarlyToolBonus:
    """A + clip(delta (p - mean p) / mean L, -k |A|, k |A|) for right rollouts that called a tool.

    p is the number of actions before the first call (part `first_call`, -1 if there was none), L
    the length, their means those of the group's rollouts that are meant.
    """

    bias_coef: float
    max_bias_fraction: float
    required_reward_terms = ("correct", "first_call")

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p, L = batch.reward_terms["first_call"], batch.lengths
        meant = (batch.reward_terms["correct"] > 0.5) & (p >= 0)
        late = p - group_ops.mean_where(meant, p, batch.group)
        length = group_ops.mean_where(meant, L, batch.group).clamp(min=1)
        bound = self.max_bias_fraction * x.abs()
        bias = torch.max(torch.min(self.bias_coef * late / length, bound), -bound)
        return x + bias * meant


def aspo_tir(
    group_size: int = 8, bias_coef: float = -2.0, max_bias_fraction: float = 0.7
) -> Method:
    """GRPO, and A of right rollouts moves by at most `max_bias_fraction` of itself towards early tool calls.

    A reward for calling early would be blown up by the division by std where all are right.
    """
    # Seen in a third party's code for verl, not in the paper itself. `bias_coef` < 0 favours early
    # calls; `max_bias_fraction` < 1 keeps every sign. Group size: our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), EarlyToolBonus(bias_coef, max_bias_fraction)),
    )
