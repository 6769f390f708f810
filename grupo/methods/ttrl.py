"""TTRL: the majority answer is the label. Zuo et al., 2025, arXiv:2504.16084."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.algo.advantages import Center, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ttrl(
    group_size: PositiveInt = 64, num_kept: PositiveInt = 32, clip_eps: NonNegative = 0.2
) -> Method:
    """group_size rollouts vote for the label, num_kept of them are trained on with A = (r -
    mean(r)) / std(r).

    Reward terms: "majority", r, by `rewards.agreement.Majority`.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task that vote (paper: 64).
        num_kept: rollouts of a group that are trained on (paper: 32).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepFirst(num_kept),
        advantage=chain(UseRewardTerm("majority"), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
        updates=Updates(minibatches=8),
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


PAPER = Paper(
    title="TTRL: Test-Time Reinforcement Learning",
    use="Questions have no answers, and the most frequent answer is mostly correct.",
    tags=("unsupervised", "filtering"),
    checked=("golden", "properties", "reference", "run"),
    source=Source("code", "PRIME-RL/TTRL, verl/examples/ttrl/aime.sh and amc.sh"),
    plan="aime.sh and amc.sh: train batch 8, minibatch 1: 8 updates per step",
    missing=("The KL loss of 0.001 (k3) of the scripts and verl's dual clip of 3.",),
    deviations=(
        (
            "A tie there goes to the answer that came first; here all of a tie count, so that the "
            "order of rollouts does not matter."
        ),
        "Rows count equally, as in GRPO; the released code averages over all tokens.",
    ),
    audit=(
        "numbers of votes and rollouts, clip and batch sizes compared with the scripts and their "
        "ppo_trainer.yaml"
    ),
    shown=("docs/claims.md#unlabelled",),
)
