"""A-GRAE: easy tasks early, hard tasks late. Yu et al., 2026, arXiv:2602.05548."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule, PositiveFraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def a_grae(group_size: PositiveInt = 8, target_accuracy: PositiveFraction = 1.0) -> Method:
    """GRPO whose weight moves from easy to hard tasks, and to correct answers, as accuracy grows.

    The factor (1 - m) / 2 (1 - sqrt p) favours tasks that are mostly solved, m / 2 sqrt p the
    others; m is the batch's accuracy, p the group's.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        target_accuracy: accuracy from which correct answers count in full (authors' code: 1 for
            mathematics, 0.5 for geometry and medical questions).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=DifficultyWeightedAdvantage(target_accuracy),
        updates=Updates(minibatches=4),
    )


@component
class DifficultyWeightedAdvantage:
    """A ((1 - m) / (1 - sqrt p) + m / sqrt p) / 2, also times min(1, m / target_accuracy) if A > 0.

    A = (r - p) / std(r), p the mean reward of the group, m the mean of p over the batch's groups.

    Args:
        target_accuracy: mean accuracy m from which positive advantages count in full.
        eps: added to the denominators.
    """

    target_accuracy: PositiveFraction
    eps: NumberOrSchedule = 1e-6

    requires = Requires(whole_batch=True, reward_range=(0.0, 1.0))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        A = chain(Center(), ScaleByStd(self.eps))(x, batch)
        p = group_ops.mean(x, batch.group)
        n = group_ops.count(x, batch.group)
        m = (p / n).sum() / (1 / n).sum()
        root = p.clamp(0, 1).sqrt()
        A = A * 0.5 * ((1 - m) / (1 - root + self.eps) + m / (root + self.eps))
        return torch.where(A > 0, A * (m / self.target_accuracy).clamp(max=1), A)


PAPER = Paper(
    title="Unveiling Implicit Advantage Symmetry: Why GRPO Struggles with Exploration and "
    "Difficulty Adaptation",
    use="Rewards are 0 or 1, and entropy collapses before the hard tasks have been solved once.",
    tags=("curriculum", "exploration", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("a-grae",),
    source=Source(
        "code",
        "Yu7-code/A-GRAE, verl/trainer/ppo/core_algos.py and run_qwen2.5-math-7b-grpo-agrae.sh",
    ),
    plan=(
        "run_qwen2.5-math-7b-grpo-agrae.sh: train batch 1024, minibatch 256 prompts: 4 updates per "
        "step"
    ),
    missing=(
        "The scripts that combine it with Dr. GRPO and with DAPO.",
        "The dual clip of 3 of the release.",
    ),
    deviations=(
        (
            "The mean over answers is GRPO's; the scripts leave verl's defaults on, a token mean "
            "of each micro-batch and an entropy bonus of 0.001."
        ),
        (
            "The release asks for grpo_weight == 2, and its trainer lowers that number from 2 on, "
            "already at the first step: as released, the factor never acts."
        ),
    ),
    audit=(
        "formula and constants compared with the advantage function of the authors' verl fork, "
        "with its trainer and its run scripts"
    ),
    shown=("docs/claims.md#difficulty",),
)
