"""GRAO: imitates a reference answer until surpassing it. Wang et al., 2025, arXiv:2508.07750."""

import torch
from torch import Tensor

from grupo.algo.aggregation import sequence_mean
from grupo.algo.data_source import REQUIRES_SAMPLED, is_demonstration
from grupo.algo.losses import PerSourceMean, Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def grao(
    group_size: PositiveInt = 8, sft_coef: NonNegative = 0.5, alignment_coef: NonNegative = 0.6
) -> Method:
    """J = 1/G sum_i [A_i l(o_i) + sft_coef A_y l(y) + alignment_coef A_i (l(o_i) - l(y))],
    maximised.

    l(o) = 1/|o| sum_t log pi(o_t); y is the reference answer, the task's solution. There is no
    ratio and no clip. The weight of y turns negative once the sampled rollouts are better.

    Args:
        group_size: rollouts per task (paper: 8).
        sft_coef: weight of the imitation of the reference answer (beta in the paper: 0.5).
        alignment_coef: weight of the difference between samples and reference (lambda in the
            paper: 0.6).
    """
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=AlignmentAdvantage(sft_coef, alignment_coef),
        loss=Reinforce(),
        aggregation=PerSourceMean(sequence_mean),
    )


@component
class AlignmentAdvantage:
    """(1 + alignment_coef) A for sampled rollouts, sft_coef A - alignment_coef mean(A) for the
    reference.

    A = (r - mean(r)) / std(r) over all rollouts of the group; mean(A) runs over the sampled ones.

    Args:
        sft_coef: weight of the imitation of the reference answer.
        alignment_coef: weight of the difference between samples and reference.
        eps: added to the standard deviation (our choice).
    """

    sft_coef: NumberOrSchedule
    alignment_coef: NumberOrSchedule
    eps: NumberOrSchedule = 1e-6

    requires = REQUIRES_SAMPLED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        demo = is_demonstration(batch)
        g = batch.group
        A = (x - group_ops.mean(x, g)) / (group_ops.population_std(x, g) + self.eps)
        sampled = (~demo).to(x)
        mean = group_ops.sum(A * sampled, g) / group_ops.sum(sampled, g).clamp(min=1)
        demo_advantage = self.sft_coef * A - self.alignment_coef * mean
        return torch.where(demo, demo_advantage, (1 + self.alignment_coef) * A)


PAPER = Paper(
    title="Learning to Align, Aligning to Learn: A Unified Approach for Self-Optimized Alignment",
    use="A reward model, and for each prompt one answer that is better than the policy's at first.",
    tags=("sft", "off-policy"),
    checked=("golden", "properties", "run"),
    catalogue=("grao",),
    source=Source(
        "paper",
        "eq. 2 to 4 and the training details, from a copy of the paper's text in a public "
        "repository",
    ),
    plan="the paper states a batch of 64 and no number of updates; one update per step",
    missing=(
        "The judge of the paper's experiments: DeepSeek-V3 rates help and harm.",
        "Sampling at a temperature of 0.7.",
    ),
    deviations=(
        "The mean and the population's standard deviation run over all G + 1 answers; as printed "
        "both run over the G samples alone, where A_y is undefined for G = 1.",
    ),
    audit=(
        "objective, advantage, group and coefficients compared with the copy of the paper's text"
    ),
)
