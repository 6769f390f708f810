"""GRPO-LEAD: rewards brevity and weights hard tasks. Zhang and Zuo, 2025, arXiv:2504.09696."""

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
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo_lead(
    group_size: PositiveInt = 8, length_coef: NonNegative = 0.05, clip_eps: NonNegative = 0.2
) -> Method:
    """GRPO on r = exp(-length_coef z) or -1, with advantages weighted by difficulty.

    Args:
        group_size: rollouts per task (authors' script: 8).
        length_coef: strength of the preference for short answers (authors' code: 0.05).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.2).
    """
    advantage = chain(ShortCorrectReward(length_coef), Center(), ScaleByStd(), DifficultyWeight())
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


@component
class ShortCorrectReward:
    """exp(-length_coef z) if correct (reward above 0), else -1; z is the length's z-score.

    Mean and standard deviation of the length are over the correct rollouts of the group.

    Args:
        length_coef: strength of the preference for short answers (alpha in the paper).
        eps: added to the denominator.
    """

    length_coef: NumberOrSchedule
    eps: NumberOrSchedule = 1e-6

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right = (x > 0).to(x)
        length = batch.lengths
        n = group_ops.sum(right, batch.group)
        deviation = length - group_ops.sum(right * length, batch.group) / n.clamp(min=1)
        std = (group_ops.sum(right * deviation**2, batch.group) / (n - 1).clamp(min=1)).sqrt()
        return torch.where(x > 0, (-self.length_coef * deviation / (std + self.eps)).exp(), -1.0)


@component
class DifficultyWeight:
    """x w(p) if x > 0, else x w(1 - p), with p the fraction of the group with a positive reward.

    w(p) = min_weight + (max_weight - min_weight) / (1 + exp(slope (p - midpoint))).

    Args:
        min_weight: weight of the easiest tasks.
        max_weight: weight of the hardest tasks.
        midpoint: p at the middle of the fall.
        slope: steepness of the fall.
    """

    min_weight: NumberOrSchedule = 0.4
    max_weight: NumberOrSchedule = 1.5
    midpoint: NumberOrSchedule = 0.75
    slope: NumberOrSchedule = 10.0

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = group_ops.mean((batch.reward > 0).to(x), batch.group)
        hardness = torch.sigmoid(self.slope * (self.midpoint - torch.where(x > 0, p, 1 - p)))
        return x * (self.min_weight + (self.max_weight - self.min_weight) * hardness)


PAPER = Paper(
    title="GRPO-LEAD: A Difficulty-Aware Reinforcement Learning Approach for Concise Mathematical "
    "Reasoning in Language Models",
    use="Tasks differ much in difficulty, and correct answers should be concise.",
    tags=("length", "curriculum", "reward"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "aeroplanepaper/GRPO-LEAD: verl/verl/trainer/main_ppo.py, logistic_reweight in "
        "core_algos.py, scripts/train/ds_14b_sft_stage1.sh (the README's script of the main "
        "experiments)",
    ),
    plan="ds_14b_sft_stage1.sh: 30 prompts per step, minibatches of 30: one update per step",
    missing=(
        (
            "The length reward is skipped where the three shortest answers of a group have "
            "4,000 tokens or fewer on average."
        ),
        (
            "Answers without a box or an end of thinking have reward 0 in the release, -2 where "
            "they repeat themselves, and stay in the group's statistics; here they have -1. It "
            "reads the box before the end of thinking."
        ),
        "The SFT stage before RL, and the stages of growing difficulty.",
        (
            "The script's rejection of groups without a correct answer, or whose rewards are all "
            "1 (trainer.rejection_sample): here their tokens count in the mean."
        ),
        "The script's temperature of 0.8 and its framework's entropy bonus of 0.001.",
    ),
    deviations=("The mean is over the tokens of a minibatch, in the release of a micro-batch.",),
    audit=(
        "reward, weight, constants and plan compared with main_ppo.py, core_algos.py and "
        "the run script"
    ),
    shown=("docs/claims.md#padded",),
)
