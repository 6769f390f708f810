"""DLER: the plainest length penalty, optimised well. Liu et al., 2025, arXiv:2510.15110."""

from collections.abc import Sequence

from torch import Tensor

from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DLER: Doing Length pEnalty Right - Incentivizing More Intelligence per Token via"
    " Reinforcement Learning",
    use="Answers are right but far too long, and length penalties have cost accuracy.",
    checked=("golden", "laws", "run"),
)


@component
class ZeroOverlongReward:
    """x, but 0 for a rollout of more than `max_length` actions."""

    max_length: int

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (batch.lengths <= self.max_length)


@component
class KeepInformativeWithinLength:
    """Groups whose rewards differ once those beyond `max_length` actions are 0."""

    max_length: int

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        top = self.max_length
        return [g for g in groups if len({r.reward * (r.length <= top) for r in g.rollouts}) > 1]


def dler(
    max_length: int = 4000, group_size: int = 16, clip_low: float = 0.2, clip_high: float = 0.28
) -> Method:
    """A = (a - mean(a)) / std(a) over all tokens, a = r - mean(r) by group, r = 0 beyond `max_length`.

    loss = token mean of -min(R A, clip(R, 1 - `clip_low`, 1 + `clip_high`) A), over groups whose r differ,
    sampled again until the batch is full (eq. 3, sections 3.1 to 3.4).
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), 10),  # ten rounds of sampling are DAPO's
        sampler=GroupSampler(group_size),
        filter=KeepInformativeWithinLength(max_length),
        advantage=chain(ZeroOverlongReward(max_length), Center(), Whiten()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )
