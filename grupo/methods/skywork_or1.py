"""Skywork-OR1: an entropy bonus only at low entropy. He et al., 2025, arXiv:2505.22312."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.losses.regularizers import EntropyBonus
from grupo.core.controllers import TargetEntropy
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Skywork Open Reasoner 1 Technical Report",
    use="A model with long reasoning loses its entropy early in training and stops improving.",
    tags=("entropy", "filtering"),
    checked=("golden", "properties", "run"),
)


def skywork_or1(
    group_size: PositiveInt = 16,
    clip_eps: NonNegative = 0.2,
    target_entropy: NonNegative = 0.2,
    entropy_coef_step: NonNegative = 0.005,
) -> Method:
    """loss = mean over all tokens of -min(R A, clip(R, 1 -+ clip_eps) A) - a_k H, no KL.

    a_k = c_k where the entropy is at most target_entropy, else 0. c_k starts at 0, rises by
    entropy_coef_step after a step below the target and falls by it after one above. Groups of equal
    rewards are dropped.

    Args:
        group_size: rollouts per task.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        target_entropy: entropy, in nats, up to which the bonus is on.
        entropy_coef_step: change of c_k per step.
    """
    # The released scripts cap c_k at 0.005 and change it by 0.0001. Truncated answers keep their 0;
    # the staged length limit, on-policy updates and temperature 1 are choices of a recipe.
    bonus = EntropyBonus(TargetEntropy(target_entropy, entropy_coef_step))
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=Clip(clip_eps, clip_eps) + bonus,
        aggregation=token_mean,
    )
