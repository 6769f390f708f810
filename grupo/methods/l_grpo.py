"""L-GRPO: brevity counts where all are correct. Song and Zheng, 2025, arXiv:2505.21178."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def l_grpo(
    max_length: PositiveInt,
    group_size: PositiveInt = 8,
    length_coef: NonNegative = 1.0,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """GRPO with clip-higher and token mean; r = 1 + length_coef (1 - L / max_length) if all are
    correct.

    The second stage of ConciseR; the first is `dapo` without its penalty. Groups that are all
    correct must be kept here.

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: rollouts per task (our choice).
        length_coef: weight of the length bonus (our choice).
        clip_low: ratios are clipped below at 1 - clip_low (our choice).
        clip_high: ratios are clipped above at 1 + clip_high (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(BrevityWhenAllCorrect(max_length, length_coef), Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )


@component
class BrevityWhenAllCorrect:
    """r + length_coef (1 - L / max_length) in groups without an incorrect rollout, else r.

    Args:
        max_length: length limit of an answer, in tokens.
        length_coef: weight of the length bonus.
    """

    max_length: PositiveInt
    length_coef: NumberOrSchedule

    requires = Requires(reward_terms=("correct",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        brevity = 1 - batch.lengths / self.max_length
        all_correct = group_ops.min(batch.reward_terms["correct"], batch.group) > 0.5
        return torch.where(all_correct, x + self.length_coef * brevity, x)


PAPER = Paper(
    title="Walk Before You Run! Concise LLM Reasoning via Reinforcement Learning",
    use="A policy that already reasons well should be shorter, at no cost in accuracy.",
    tags=("length", "reward"),
    checked=("golden", "properties", "run"),
    example="l_grpo(max_length=64)",
    catalogue=("conciser-l-grpo",),
    source=Source("abstract", "abstract and the README of nick7nlp/ConciseR, which holds no code"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The first stage, GRPO with clip-higher and dynamic sampling (`dapo` without its "
            "penalty) and, by a public summary, an entropy bonus."
        ),
    ),
    deviations=(
        (
            "The form of the bonus is our reading: the sources state that length counts once all"
            " rollouts are correct."
        ),
        "The token mean is our reading: no source states how this stage averages.",
        "group_size, length_coef and clips are our choice.",
    ),
    audit="the two stages compared with the README; the formula with the catalogue's row",
    shown=("docs/claims.md#padded",),
)
