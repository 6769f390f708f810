"""Magistral: GRPO with five changes. Rastogi et al., 2025, arXiv:2506.10910."""

from grupo.algo.advantages import Center, StandardiseBatch, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


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
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(Center(), StandardiseBatch()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="Magistral",
    use="A large run from a checkpoint without reasoning, and without a reference policy in "
    "memory.",
    tags=("advantage", "aggregation", "clipping", "filtering"),
    verl="adv_estimator='reinforce_plus_plus_baseline' normalises over tokens, not over answers",
    checked=("golden", "properties", "run"),
    source=Source("paper", "section 2.1 by the file's own account; three summaries were opened"),
    plan=(
        "not stated in any source that was opened; one update per step, so that the step's "
        "batch is the minibatch over which advantages are standardised; the clip does not act"
    ),
    missing=(
        "The weights of the rewards: 0.9 for correctness, 0.1 for format, 0.1 for language, and a "
        "linear penalty of up to 0.1 on length.",
        "Asynchronous generation with weights that change within a rollout.",
        "Refilling after groups of equal rewards are dropped, and the stages of growing length.",
    ),
    deviations=(
        "L_i is summed over the batch: in the paper's expectation it is summed over a group.",
        "The standard deviation is by n - 1: the paper does not state which.",
        "clip_low 0.2 and group_size 16 are our choice.",
    ),
    audit=(
        "centring, standardisation over the minibatch, clip_high, token mean, no KL and dropping "
        "of groups compared with the summaries"
    ),
)
