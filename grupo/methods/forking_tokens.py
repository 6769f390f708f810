"""Forking tokens: trains on the highest-entropy tokens. Wang et al., 2025, arXiv:2506.01939."""

from grupo.algo.advantages import (
    Center,
    OverlongPenalty,
    RescaleReward,
    ScaleByStd,
    chain,
)
from grupo.algo.aggregation import TopEntropyMask, token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def forking_tokens(
    max_length: PositiveInt,
    overlong_buffer: PositiveInt,
    group_size: PositiveInt = 16,
    top_entropy_fraction: Fraction = 0.2,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
    max_resample_rounds: PositiveInt = 10,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Method:
    """DAPO's loss on the batch's highest-entropy tokens, 0 on all others.

    The mean is still over all tokens. The entropy is the policy's before the step's updates; the
    threshold is taken over the whole minibatch. Overlong penalty, clip-higher, dynamic sampling and
    the sixteen updates per step are DAPO's.

    Args:
        max_length: length limit of an answer, in tokens.
        overlong_buffer: tokens below max_length over which the overlong penalty grows.
        group_size: rollouts per task (DAPO's value).
        top_entropy_fraction: fraction of tokens that are trained on (paper: 0.2).
        clip_low: ratios are clipped below at 1 - clip_low (DAPO's value).
        clip_high: ratios are clipped above at 1 + clip_high (DAPO's value).
        max_resample_rounds: most rounds of generation in a step (DAPO's value).
        reward_range: smallest and largest reward of the environment, which become -1 and 1, as in
            DAPO.
    """
    shaping = (RescaleReward(reward_range), OverlongPenalty(max_length, overlong_buffer))
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(*shaping, Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=TopEntropyMask(top_entropy_fraction, token_mean),
        updates=Updates(minibatches=16),
    )


PAPER = Paper(
    title="Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective Reinforcement "
    "Learning for LLM Reasoning",
    use="Chains of thought are long and the model is large: the abstract reports gains at 14B and "
    "32B, and at 8B results comparable with training on all tokens.",
    tags=("entropy", "filtering"),
    trl="top_entropy_quantile=0.2 (threshold over all processes' tokens of the micro-batch)",
    checked=("golden", "properties", "run"),
    example="forking_tokens(max_length=64, overlong_buffer=16)",
    source=Source(
        "third_party",
        "the abstract and reviews of the paper (andlukyane.com for the entropy): 20 % of the "
        "tokens of a batch, on DAPO's recipe",
    ),
    plan="DAPO's recipe: batch of 512 prompts, minibatches of 32: 16 updates per step (DAPO,"
    " section 4.1).",
    deviations=(
        "The entropy is that before the step's updates, for all minibatches of the step; the"
        " paper's is that of the policy in training at each update (from a review).",
        "After 10 rounds of generation a step trains on fewer groups; DAPO's script ends with an"
        " error.",
    ),
    audit="Fraction, threshold and recipe compared with two reviews of the paper and with DAPO's;"
    " neither paper nor code could be opened.",
    shown=("docs/claims.md#keys",),
)
