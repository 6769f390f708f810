"""GRAO: imitate a reference answer until you beat it. Wang et al., 2025, arXiv:2508.07750."""

import torch
from torch import Tensor

from grupo.algo.aggregation import sequence_mean
from grupo.algo.data_source import REQUIRES_SAMPLED, is_demonstration
from grupo.algo.losses import PerSourceMean, Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="Learning to Align, Aligning to Learn: A Unified Approach for Self-Optimized Alignment",
    use="A reward model and one good answer to each prompt, better than the model's own at first.",
    checked=("golden", "laws", "run"),
    catalogue=("grao",),
)


@component
class AlignmentAdvantage:
    """What log-likelihoods count: (1 + `push`) A for own rollouts, and for the reference answer
    `sft_coef` A - `push` mean(A of own). A = (r - mean(r)) / std(r) over all of them together.
    """

    sft_coef: float
    alignment_coef: float
    eps: float = 1e-6  # our choice

    @property
    def required_signals(self) -> frozenset[str]:
        """It reads who drew what."""
        return REQUIRES_SAMPLED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        theirs, p = is_demonstration(batch), batch.group
        A, own = (
            (x - group_ops.mean(x, p)) / (group_ops.population_std(x, p) + self.eps),
            (~theirs).to(x),
        )
        mean = group_ops.sum(A * own, p) / group_ops.sum(own, p).clamp(min=1)
        return torch.where(
            theirs, self.sft_coef * A - self.alignment_coef * mean, (1 + self.alignment_coef) * A
        )


def grao(group_size: int = 8, sft_coef: float = 0.5, alignment_coef: float = 0.5) -> Method:
    """J = 1/G sum_i [A_i l(o_i) + `sft_coef` A_y l(y) + `push` A_i (l(o_i) - l(y))], maximised.

    l(o) = 1/|o| sum_t log pi(o_t), y the reference answer. There is no ratio and no clip. The
    weight of y, the task's solution, turns negative once own rollouts are better.
    """
    # The printed mean of A runs over the G samples alone, where A_y has no meaning for G = 1: ours
    # runs over all G + 1, with the population's standard deviation. The paper's two coefficients
    # were not seen: 0.5 is our choice, and so is `group`.
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=AlignmentAdvantage(sft_coef, alignment_coef),
        loss=Reinforce(),
        aggregation=PerSourceMean(sequence_mean),
    )
