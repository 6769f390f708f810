"""ADORA: groups count where longer answers are right. Ren et al., 2026, arXiv:2602.10019."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="ADORA: Training Reasoning Models with Dynamic Advantage Estimation on Reinforcement "
    "Learning",
    use="A policy that reasons too little shall find out by itself that thinking longer helps.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("adora",),
)


@piece
class WhereLongWins:
    """x, times `less` in groups whose longest right answer is no longer than the wrong on average.

    Wrong answers of `limit` actions or more are not counted: they were cut off.
    """

    limit: int
    less: float
    reads_parts = ("correct",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        L, right = batch.lengths, batch.parts["correct"] > 0.5
        longest = group_ops.max(torch.where(right, L, -torch.inf), batch.group)
        wrong = group_ops.mean_where(~right & (self.limit > L), L, batch.group)
        return torch.where(longest > wrong, x, self.less * x)


def adora(group: int = 16, limit: int = 3900, less: float = 0.1, kl: float = 0.001) -> Method:
    """A = w (r - mean(r)) / std(r), w = 1 if the longest right answer is longer than wrong ones.

    Otherwise w = `less`. The paper's frame is any weight of a group that its own rollouts decide;
    this is the one released for reasoning to grow.
    """
    # The authors' code for language models: right is a score above 1.01 there, the part `correct`
    # here. Their code for vision keeps w = 1 where nobody is right: the same, A being 0 there.
    return Method(
        sample=Independent(group),
        credit=chain(Center(), ScaleByStd(), WhereLongWins(limit, less)),
        loss=Clip() + kl * KL(),
    )
