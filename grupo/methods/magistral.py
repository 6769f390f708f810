"""Magistral: GRPO with five changes. Rastogi et al., 2025, arXiv:2506.10910."""

from grupo.algo.advantages import Center, StandardiseBatch, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Magistral",
    use="A large run from a checkpoint without reasoning, and without a reference policy in "
    "memory.",
    tags=("advantage", "aggregation", "clipping", "filtering"),
    verl="adv_estimator='reinforce_plus_plus_baseline' normalises over tokens, not over answers",
    checked=("golden", "properties", "run"),
)


def magistral(
    group_size: PositiveInt = 16, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.28
) -> Method:
    """A = r - mean(r) per group, then standardised over the minibatch; no KL (section 2.1).

    loss = 1 / sum_i L_i times the sum over all tokens of
      -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A), over groups whose rewards differ.

    Args:
        group_size: rollouts per task (our choice).
        clip_low: ratios are clipped below at 1 - clip_low (our choice).
        clip_high: ratios are clipped above at 1 + clip_high (paper: 0.26 to 0.28, 0.3 for the small
            model).
    """
    # The paper does not say which std. Advantages are computed on a step's batch, which is the
    # minibatch where a step has one update. L_i is summed over the batch here, over a group in the
    # paper's expectation.
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(Center(), StandardiseBatch()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )
