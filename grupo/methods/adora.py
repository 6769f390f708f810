"""ADORA: groups count where longer answers are right. Ren et al., 2026, arXiv:2602.10019."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="ADORA: Training Reasoning Models with Dynamic Advantage Estimation on Reinforcement "
    "Learning",
    use="A policy that reasons too little shall find out by itself that thinking longer helps.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("adora",),
)


@component
class LongCorrectGroupWeight:
    """x, times `reduced_weight` in groups whose longest right answer is no longer than the wrong on average.

    Wrong answers of `max_length` actions or more are not counted: they were cut off.
    """

    max_length: int
    reduced_weight: float
    required_reward_terms = ("correct",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        L, right = batch.lengths, batch.reward_terms["correct"] > 0.5
        longest = group_ops.max(torch.where(right, L, -torch.inf), batch.group)
        wrong = group_ops.mean_where(~right & (self.max_length > L), L, batch.group)
        return torch.where(longest > wrong, x, self.reduced_weight * x)


def adora(
    group_size: int = 16,
    max_length: int = 3900,
    reduced_weight: float = 0.1,
    kl_coef: float = 0.001,
) -> Method:
    """A = w (r - mean(r)) / std(r), w = 1 if the longest right answer is longer than wrong ones.

    Otherwise w = `reduced_weight`. The paper's frame is any weight of a group that its own rollouts decide;
    this is the one released for reasoning to grow.
    """
    # The authors' code for language models: right is a score above 1.01 there, the part `correct_coef`
    # here. Their code for vision keeps w = 1 where nobody is right: the same, A being 0 there.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), LongCorrectGroupWeight(max_length, reduced_weight)),
        loss=Clip() + kl_coef * KL(),
    )
