"""Forking tokens: trains on the highest-entropy tokens. Wang et al., 2025, arXiv:2506.01939."""

from grupo.algo.advantages import (
    Center,
    OverlongPenalty,
    RescaleReward,
    ScaleByStd,
    chain,
)
from grupo.algo.aggregation import NormalisedAggregation, TopEntropyMask
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

    The mean is over the selected tokens. The entropy is the policy's before the step's updates; the
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
        aggregation=NormalisedAggregation(TopEntropyMask(top_entropy_fraction)),
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
        "code",
        "Shenzhi-Wang/Beyond-the-80-20-Rule-RLVR: recipe/rlvr_with_high_entropy_tokens_only/"
        "run_only_top20_high_entropy_tokens_dapo_qwen3_14b.sh, verl/trainer/ppo/core_algos.py and "
        "verl/workers/actor/dp_actor.py",
    ),
    plan="run_only_top20_high_entropy_tokens_dapo_qwen3_14b.sh: train batch 512, minibatch 32"
    " prompts: 16 updates per step",
    missing=("The dual clip of 10 of the script.",),
    deviations=(
        "The mean is over the selected tokens, as in the release. TRL, and eq. 5 of the paper by"
        " our memory of it, divide by all: aggregation=TopEntropyMask(0.2, token_mean).",
        "The entropy is that before the step's updates, for all minibatches of the step; in the"
        " release it is that of the policy in training at each update.",
        "The threshold is over a minibatch, in the release over a micro-batch, which counts by its"
        " share of the answers.",
        "A round generates the missing groups only, in the script 3 x 512 prompts.",
        "After 10 rounds of generation a step trains on fewer groups; DAPO's script ends with an"
        " error.",
    ),
    audit="Fraction, threshold, clips, overlong penalty, group and batch sizes compared with the"
    " script, get_global_entropy_top_mask and the actor.",
    shown=("docs/claims.md#keys",),
)
