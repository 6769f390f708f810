"""XRPO: a right answer counts more the less likely it was. Bamba et al., 2025, arXiv:2510.06672."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="XRPO: Pushing the limits of GRPO with Targeted Exploration and Exploitation",
    use="The policy has a favourite way to be right and learns no other.",
    checked=("golden", "laws", "run"),
    catalogue=("xrpo",),
)


@component
class NoveltyBonus:
    """A + min(max(weight (1 - exp(s - mean s)), 0), cap A) where A > 0.

    s is the mean log-probability of a rollout's actions when sampled, compared within the group.
    """

    novelty_coef: float
    max_bonus_fraction: float

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        s = MeanSignal()(x, batch)
        novelty = (s - group_ops.mean(s, batch.group)).exp()
        bonus = (self.novelty_coef * (1 - novelty)).clamp(min=0)
        return x + torch.min(bonus, self.max_bonus_fraction * x.clamp(min=0))


def xrpo(group_size: int = 8, novelty_coef: float = 2.5, max_bonus_fraction: float = 0.5) -> Method:
    """GRPO whose positive advantages grow, by at most `max_bonus_fraction` of themselves, where s is low.

    Of the paper only this third: its allocation of rollouts and its worked examples in prompts of
    tasks that nobody solved are not here.
    """
    # Formula from a third party's code; `novelty_coef` and `max_bonus_fraction` are lambda_novelty and kappa_clip of the
    # paper's reproducibility statement as a public review quotes it. Group size: our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), NoveltyBonus(novelty_coef, max_bonus_fraction)),
    )
