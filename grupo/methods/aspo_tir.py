"""ASPO for tools: a bonus for early tool calls. Lin and Xu, 2025, arXiv:2508.19201."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def aspo_tir(
    group_size: PositiveInt = 8,
    bias_coef: NumberOrSchedule = -2.0,
    max_bias_fraction: NonNegative = 0.7,
) -> Method:
    """GRPO whose advantage of correct rollouts grows or shrinks by the position of the first call.

    The change is at most max_bias_fraction of the advantage. A reward for early calls would be
    amplified by the division by std where all answers are correct.

    Args:
        group_size: rollouts per task (our choice).
        bias_coef: strength; negative favours early calls (that implementation: -2.0).
        max_bias_fraction: largest change, relative to |A|; below 1 no sign changes (that
            implementation: 0.7).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), EarlyToolBonus(bias_coef, max_bias_fraction)),
    )


@component
class EarlyToolBonus:
    """A + clip(bias_coef (p - mean p) / mean L, -k |A|, k |A|), k = max_bias_fraction.

    Applies to correct rollouts that called a tool. p is the number of actions before the first call
    (reward term "first_call", -1 without a call), L the length; the means are over such rollouts of
    the group.

    Args:
        bias_coef: strength; negative favours early calls.
        max_bias_fraction: largest change, relative to |A|; below 1 no sign changes.
    """

    bias_coef: NumberOrSchedule
    max_bias_fraction: NumberOrSchedule

    requires = Requires(reward_terms=("correct", "first_call"))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.reward_terms["first_call"]
        L = batch.lengths
        applies = (batch.reward_terms["correct"] > 0.5) & (p >= 0)
        delay = p - group_ops.mean_where(applies, p, batch.group)
        length = group_ops.mean_where(applies, L, batch.group).clamp(min=1)
        bound = self.max_bias_fraction * x.abs()
        bias = torch.max(torch.min(self.bias_coef * delay / length, bound), -bound)
        return x + bias * applies


PAPER = Paper(
    title="Understanding Tool-Integrated Reasoning",
    use="The policy calls its tool only to check what it has already computed.",
    tags=("agents", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("aspo-tir",),
    source=Source("third_party", "an implementation for verl by other people (apply_aspo_shaping)"),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        (
            "The position of the first call and correctness are reward terms; that implementation "
            "searches the text for code, has -1 for a call that is in the messages alone, and "
            "takes a reward above 0 as correct."
        ),
        "The clip of 0.2 and the mean over answers are GRPO's: no source that was opened has them.",
    ),
    audit=(
        "bias, bounds and constants compared with apply_aspo_shaping; the paper's equation could "
        "not be opened"
    ),
)
