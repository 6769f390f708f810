"""TTRL: the majority answer is the label. Zuo et al., 2025, arXiv:2504.16084."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.advantages import Center, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="TTRL: Test-Time Reinforcement Learning",
    use="Questions have no answers, and the most frequent answer is mostly correct.",
    tags=("unsupervised", "filtering"),
    checked=("golden", "properties", "reference", "run"),
)


@component
class KeepFirst:
    """Keeps the first num_kept rollouts of each group, whatever their rewards.

    Args:
        num_kept: rollouts of a group that are trained on.
    """

    num_kept: PositiveInt

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=group.rollouts[: self.num_kept]) for group in groups]


def ttrl(
    group_size: PositiveInt = 64, num_kept: PositiveInt = 32, clip_eps: NonNegative = 0.2
) -> Method:
    """group_size rollouts vote for the label, num_kept of them are trained on with A = (r -
    mean(r)) / std(r).

    Reward terms: "majority", r, by `rewards.agreement.Majority`.

    Args:
        group_size: rollouts per task that vote (paper: 64).
        num_kept: rollouts of a group that are trained on (paper: 32).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # The released code gives a tie to the answer that came first; here all of a tie count, so that
    # the order of rollouts does not matter.
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepFirst(num_kept),
        advantage=chain(UseRewardTerm("majority"), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
    )
