"""Dual-clip: the loss of a negative advantage is bounded. Ye et al., 2019, arXiv:1912.09729."""

from grupo.algo.losses import Clip
from grupo.algo.ratios import CappedRatio
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def dual_clip(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2, dual_clip: Positive = 3.0
) -> Method:
    """PPO's clipped loss, at most -dual_clip A where A < 0.

    loss = -max(min(r A, clip(r, 1 - clip_eps, 1 + clip_eps) A), dual_clip A) where A < 0, PPO's
    elsewhere. This is PPO's clip of min(r, dual_clip), because where A > 0 the cap lies above
    1 + clip_eps. A = (r - mean(r)) / std(r) and the mean over answers are GRPO's.

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (verl's default).
        dual_clip: c of the paper (3, as we remember it).
    """
    return Method(
        sampler=GroupSampler(group_size), loss=Clip(clip_eps, clip_eps, CappedRatio(dual_clip))
    )


PAPER = Paper(
    title="Mastering Complex Control in MOBA Games with Deep Reinforcement Learning",
    use="Rollouts are stale, and tokens with A < 0 that became likelier make the loss explode.",
    tags=("clipping", "off-policy"),
    equals_grpo_when="there is one update per step",
    trl="delta=3.0 (two-sided clipping)",
    verl="the vanilla loss: clip_ratio_c=3.0, its default, so that every GRPO there is this",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "verl's and TRL's implementations, which cite the paper"),
    plan=(
        "not stated in any source that was opened; one update per step, at which the dual clip "
        "never acts"
    ),
    missing=("The paper's control dependencies, action masks and target attention for games.",),
    deviations=("Advantages and the mean over answers are GRPO's; verl's mean is over tokens.",),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1; the paper could not be opened and c = 3 "
        "is from memory"
    ),
    shown=("docs/claims.md#reuse",),
)
