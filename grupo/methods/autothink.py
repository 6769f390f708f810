"""AutoThink: balance two modes, then reward brevity. Tu et al., 2025, arXiv:2505.10832."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def autothink(
    group_size: PositiveInt = 8, mode_fraction: Fraction = 0.5, length_coef: NonNegative = 0.0
) -> Method:
    """A = (r - mean(r)) / std(r), r by mode (thinking or not), outcome and length.

    Stage 1 of the paper: mode_fraction 0.5. Stage 2: mode_fraction 1, no balance. Stage 3: also
    length_coef 0.05. Reward terms: "correct"; "think", 0 if the answer begins by closing the
    thinking; "format", 0 if the thinking is never closed or no answer is found (r = 0 before the
    balance).

    A step makes 2 updates, one on each of 2 minibatches; stages 2 and 3 make one.

    Args:
        group_size: rollouts per task (authors' scripts: 8).
        mode_fraction: share of a mode in the batch from which its reward is reduced.
        length_coef: strength of the length term.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(BalancedModeReward(mode_fraction, length_coef), Center(), ScaleByStd()),
        updates=Updates(minibatches=2),
    )


REWARD_TERMS = ("correct", "think", "format")


@component
class BalancedModeReward:
    """Reward by mode and outcome, shaped by length, reduced for a mode that is used too often.

    With thinking: correct 1, incorrect 0, moved towards 0 and -1; without: 2 and -1, moved towards
    1 and -2; by d = clip(slope (share of the mode in the batch - mode_fraction), 0, 1). Length:
    e^(-length_coef z) - 1 is added for the correct answers of a group and subtracted for the
    incorrect ones, z their standardised length.

    Args:
        mode_fraction: share of a mode in the batch from which its reward is reduced.
        length_coef: strength of the length term.
        slope: increase of d per unit of the excess share.
    """

    mode_fraction: Fraction
    length_coef: NumberOrSchedule
    slope: NumberOrSchedule = 2.0

    # the terms are true above 1/2; the shares of the modes are those of the batch
    requires = Requires(reward_terms=REWARD_TERMS, whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        correct, think, well_formed = (batch.reward_terms[name] > 0.5 for name in REWARD_TERMS)
        correct = correct & well_formed
        success = correct.to(x)
        r = torch.where(think, success, 3 * success - 1) * well_formed
        label = 2 * batch.group + correct
        L = batch.lengths
        z = (L - group_ops.mean(L, label)) / group_ops.std(L, label).clamp(min=1e-6)
        r = r + (2 * success - 1) * (torch.exp(-self.length_coef * z) - 1)
        think_share = think.to(x).mean()
        share = torch.where(think, think_share, 1 - think_share)
        d = (self.slope * (share - self.mode_fraction)).clamp(0, 1)
        return (1 - d) * r + d * torch.where(think, success - 1, 3 * success - 2)


PAPER = Paper(
    title="Learning When to Think: Shaping Adaptive Reasoning in R1-Style Models via Multi-Stage"
    " RL",
    use="A reasoning model thinks about every task, and should skip thinking on easy ones.",
    tags=("length", "reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("autothink",),
    source=Source(
        "code",
        "TU2021/AutoThink, verl/verl/trainer/main_ppo.py, deepscaler/rewards/math_reward.py and "
        "scripts/train",
    ),
    plan=(
        "train_stage1.sh: train batch 128, minibatch 64 prompts: 2 updates per step; stages 2 and "
        "3 have 64 and 64, one update"
    ),
    missing=(
        "The stages as a pipeline: each is a recipe of its own here.",
        "The temperature of 0.6 at which the scripts sample.",
        (
            "The release lowers the reward of a wrong answer without thinking to -2 where it has "
            "ten equal sequences of up to 30 words in a row, or a word of 120 characters."
        ),
    ),
    deviations=(
        (
            "The mean over answers is GRPO's; the release adds the token means of a device's "
            "micro-batches, whose number depends on the lengths, and has verl's entropy bonus of "
            "0.001."
        ),
    ),
    audit=(
        "rewards, targets, slope, length terms and batch sizes compared with the reward manager "
        "and the scripts of the three stages"
    ),
)
