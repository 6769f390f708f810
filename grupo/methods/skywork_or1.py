"""Skywork-OR1: an entropy bonus only while entropy is low. He et al., 2025, arXiv:2505.22312."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.losses.regularizers import EntropyBonus
from grupo.core.controllers import TargetEntropy
from grupo.core.paper import Paper
from grupo.core.schedules import as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Skywork Open Reasoner 1 Technical Report",
    use="A model that reasons at length loses its entropy early in training, and stops to improve.",
    checked=("golden", "laws", "run"),
)


def skywork_or1(
    group_size: int = 16,
    clip_eps: float = 0.2,
    target_entropy: float = 0.2,
    entropy_coef_step: float = 0.005,
) -> Method:
    """loss = mean over all tokens of -min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A) - a_k H, no KL.

    a_k = c_k where the entropy is at most `target_entropy`, else 0; c_k rises by `entropy_coef_step` after a step below
    the target and falls by it after one above, from 0. Groups whose rewards are equal are dropped.
    """
    # The released scripts cap c_k at 0.005 and move it by 0.0001. Answers cut off at the limit keep
    # their 0; the limit grows by stages, on policy, at temperature 1: choices of a recipe.
    bonus = EntropyBonus(as_float(TargetEntropy(target_entropy, entropy_coef_step)))
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=Clip(clip_eps, clip_eps) + bonus,
        aggregation=token_mean,
    )
