"""ADORA: groups count more where long answers are correct. Ren et al., 2026, arXiv:2602.10019."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def adora(
    group_size: PositiveInt = 16,
    max_length: PositiveInt = 3900,
    reduced_weight: NonNegative = 0.1,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """A = w (r - mean(r)) / std(r), w = 1 if the longest correct answer is longer than wrong ones.

    Otherwise w = reduced_weight. The paper allows any weight that a group's own rollouts decide;
    this one is released for growing reasoning. Reward term: "correct".

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task.
        max_length: length of a truncated answer, in tokens.
        reduced_weight: factor on the advantages of the other groups.
        kl_coef: weight of the KL divergence from the reference policy.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), LongCorrectGroupWeight(max_length, reduced_weight)),
        loss=Clip() + kl_coef * KL(),
        updates=Updates(minibatches=2),
    )


@component
class LongCorrectGroupWeight:
    """x, or reduced_weight x in groups whose longest correct answer is not longer than wrong ones.

    It is compared with the mean length of the incorrect answers; incorrect answers of `max_length`
    tokens or more are truncated and not counted.

    Args:
        max_length: length of a truncated answer, in tokens.
        reduced_weight: factor on the advantages of such groups.
    """

    max_length: PositiveInt
    reduced_weight: NumberOrSchedule

    requires = Requires(reward_terms=("correct",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        L = batch.lengths
        correct = batch.reward_terms["correct"] > 0.5
        longest_correct = group_ops.max(torch.where(correct, L, -torch.inf), batch.group)
        is_incorrect = ~correct & (self.max_length > L)
        mean_incorrect = group_ops.mean_where(is_incorrect, L, batch.group)
        return torch.where(longest_correct > mean_incorrect, x, self.reduced_weight * x)


PAPER = Paper(
    title="ADORA: Training Reasoning Models with Dynamic Advantage Estimation on Reinforcement "
    "Learning",
    use="A policy reasons too little and should discover that longer reasoning helps.",
    tags=("length", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("adora",),
    source=Source(
        "code",
        "ShadeCloak/ADORA, ADORA/verl/trainer/ppo/core_algos.py and ADORA/ADORA.sh",
    ),
    plan="ADORA.sh: train batch 64, minibatch 32 prompts: 2 updates per step",
    missing=(
        (
            "Weights other than the length rule: the paper allows any that the rollouts of a group "
            "decide."
        ),
        "verl's clamp of k3 to +-10.",
        (
            "The reward of the script's puzzles: 3 for a correct answer, -0.5 for a wrong one, -1 "
            "for one that cannot be parsed, -3 without the format."
        ),
    ),
    deviations=(
        'An answer is correct above "correct" = 0.5, in the release above a score of 1.01.',
        (
            "The release for vision keeps w = 1 where no answer is correct, also where A is not 0:"
            " its reward is 0.1 for a wrong boxed answer. It has w = reduced_weight where some"
            " answer is correct and every incorrect one has 4,094 tokens or more."
        ),
        (
            "The mean over answers is GRPO's; the release leaves verl's defaults on, a token mean "
            "of each micro-batch and an entropy bonus of 0.001."
        ),
        (
            "max_length is the script's, whose answers have at most 2,048 tokens: there no answer "
            "counts as truncated."
        ),
    ),
    audit=(
        "formula and constants compared with compute_grpo_outcome_advantage_ADORA and the run "
        "script (lambda 0.1, length 3,900, group 16, KL 0.001)"
    ),
)
