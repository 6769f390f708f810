"""GFPO: samples more and trains on the shortest. Shrivastava et al., 2025, arXiv:2508.09726."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import KeepBest
from grupo.algo.losses import KL, Clip, Entropy
from grupo.core import group_ops
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.core.types import Rollout
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Sample More to Think Less: Group Filtered Policy Optimization for Concise Reasoning",
    use="Answers grow while they improve, and sampling is cheap.",
    tags=("filtering", "length"),
    trl="GFPOTrainer, experimental, gone by 1.10: num_remains_in_group and a group_filter_func",
    checked=("golden", "properties", "run"),
)


def shortness(rollout: Rollout) -> float:
    """-L: the shortest rollouts rank first."""
    return -rollout.length


def efficiency(rollout: Rollout) -> float:
    """r / L: reward per token."""
    return rollout.reward / max(rollout.length, 1)


def gfpo(
    group_size: PositiveInt = 16,
    num_kept: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """Trains on the num_kept shortest rollouts of each group; A = (r - mean) / std among them.

    loss = mean over their tokens of -min(R A, clip(R) A) + kl_coef k3 - 0.001 entropy (eq. 2).
    `.replace(filter=KeepBest(num_kept, efficiency))` keeps the highest reward per token instead.

    Args:
        group_size: rollouts per task (paper: 16).
        num_kept: rollouts of a group that are trained on (paper: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    # Eq. 2 divides by the tokens of all rollouts; here only those of the kept rollouts count. Its
    # std is that of the population.
    return Method(
        sampler=GroupSampler(group_size),
        filter=KeepBest(num_kept, shortness),
        advantage=chain(Center(), ScaleByStd(std=group_ops.population_std)),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL() + (-0.001) * Entropy(),
        aggregation=token_mean,
    )
