"""GRAO: imitate a reference answer until you beat it. Wang et al., 2025, arXiv:2508.07750."""

import torch
from torch import Tensor

from grupo.algo.aggregation import sequence_mean
from grupo.algo.data_source import SAMPLED, demonstrations
from grupo.algo.losses import EachSource, Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithExpert

PAPER = Paper(
    title="Learning to Align, Aligning to Learn: A Unified Approach for Self-Optimized Alignment",
    use="A reward model and one good answer to each prompt, better than the model's own at first.",
    checked=("golden", "laws", "run"),
    catalogue=("grao",),
)


@piece
class Aligned:
    """What log-likelihoods count: (1 + `push`) A for own rollouts, and for the reference answer
    `imitate` A - `push` mean(A of own). A = (r - mean(r)) / std(r) over all of them together.
    """

    imitate: float
    push: float
    eps: float = 1e-6  # our choice

    @property
    def needs(self) -> frozenset[str]:
        """It reads who drew what."""
        return SAMPLED

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        theirs, p = demonstrations(batch), batch.group
        A, own = (
            (x - group_ops.mean(x, p)) / (group_ops.population_std(x, p) + self.eps),
            (~theirs).to(x),
        )
        mean = group_ops.sum(A * own, p) / group_ops.sum(own, p).clamp(min=1)
        return torch.where(theirs, self.imitate * A - self.push * mean, (1 + self.push) * A)


def grao(group: int = 8, imitate: float = 0.5, push: float = 0.5) -> Method:
    """J = 1/G sum_i [A_i l(o_i) + `imitate` A_y l(y) + `push` A_i (l(o_i) - l(y))], maximised.

    l(o) = 1/|o| sum_t log pi(o_t), y the reference answer. There is no ratio and no clip. The
    weight of y, the task's solution, turns negative once own rollouts are better.
    """
    # The printed mean of A runs over the G samples alone, where A_y has no meaning for G = 1: ours
    # runs over all G + 1, with the population's standard deviation. The paper's two coefficients
    # were not seen: 0.5 is our choice, and so is `group`.
    return Method(
        sample=WithExpert(Independent(group)),
        credit=Aligned(imitate, push),
        loss=Reinforce(),
        weigh=EachSource(sequence_mean),
    )
