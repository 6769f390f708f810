"""DLER: the simplest length penalty, optimised well. Liu et al., 2025, arXiv:2510.15110."""

from collections.abc import Sequence

from torch import Tensor

from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DLER: Doing Length pEnalty Right - Incentivizing More Intelligence per Token via"
    " Reinforcement Learning",
    use="Answers are correct but far too long, and length penalties have reduced accuracy.",
    tags=("length", "filtering", "advantage", "clipping"),
    checked=("golden", "properties", "run"),
)


@component
class ZeroOverlongReward:
    """x, or 0 for a rollout of more than max_length tokens, (R,).

    Args:
        max_length: largest length with a reward, in tokens.
    """

    max_length: PositiveInt

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (batch.lengths <= self.max_length)


@component
class KeepInformativeWithinLength:
    """Filter: keep groups whose rewards differ after `ZeroOverlongReward`.

    Args:
        max_length: largest length with a reward, in tokens.
    """

    max_length: PositiveInt

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if len(self._distinct_rewards(group)) > 1]

    def _distinct_rewards(self, group: Group) -> set[float]:
        return {r.reward * (r.length <= self.max_length) for r in group.rollouts}


def dler(
    max_length: PositiveInt = 4000,
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """A = (a - mean(a)) / std(a) over all tokens, a = r - mean(r) over the group.

    r = 0 for answers of more than max_length tokens.
    loss = token mean of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A) over groups whose r
    differ, refilled until the batch is full (eq. 3, sections 3.1 to 3.4).

    Args:
        max_length: largest length with a reward, in tokens.
        group_size: rollouts per task.
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), 10),  # DAPO's ten rounds of generation
        sampler=GroupSampler(group_size),
        filter=KeepInformativeWithinLength(max_length),
        advantage=chain(ZeroOverlongReward(max_length), Center(), Whiten()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )
