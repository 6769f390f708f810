"""DAPO: informative groups and equal weight for all tokens. Yu et al., 2025, arXiv:2503.14476."""

from grupo.algo.advantages import (
    Center,
    OverlongPenalty,
    RescaleReward,
    ScaleByStd,
    chain,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def dapo(
    max_length: PositiveInt,
    overlong_buffer: PositiveInt,
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
    max_resample_rounds: PositiveInt = 10,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Method:
    """Clip-higher, dynamic sampling, token mean and a soft penalty for overlong answers.

    loss = mean over all tokens of the batch of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A)
    with R = pi / old and A = (r - mean(r)) / std(r) over groups where 0 < number correct < G
    (eq. 8 to 12).

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        max_length: length at which r is reduced by 1, in tokens (paper: 20,480).
        overlong_buffer: last tokens before max_length, over which the penalty grows (eq. 13; paper:
            4,096).
        group_size: rollouts per task.
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.
        max_resample_rounds: largest number of generation rounds of a step (released scripts:
            max_num_gen_batches, 10).
        reward_range: smallest and largest reward of the environment, which become -1 and 1 (eq. 7).
    """
    # with rewards of 0 and 1, a correct answer with the full penalty would get 0, as a wrong one
    shaping = (RescaleReward(reward_range), OverlongPenalty(max_length, overlong_buffer))
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(*shaping, Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


PAPER = Paper(
    title="DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    use="Answers are long, many tasks are solved by all rollouts or none, and entropy collapses.",
    tags=("clipping", "filtering", "aggregation", "length"),
    trl="loss_type='dapo', epsilon_high=0.28, mask_truncated_completions; no dynamic sampling",
    verl="the recipe dapo: clip_ratio_high=0.28, loss_agg_mode='token-mean', filter_groups, "
    "overlong_buffer",
    checked=("golden", "properties", "run"),
    example="dapo(max_length=64, overlong_buffer=16)",
    source=Source("code", "eq. 8 to 13 of the paper; verl's recipe/dapo/run_dapo_qwen2.5_32b.sh"),
    plan="section 4.1 and run_dapo_qwen2.5_32b.sh: 512 prompts, minibatch 32: 16 updates per step",
    missing=("The dual clip of 10 of the script.",),
    deviations=(
        "A round generates the missing groups only, in the script 3 x 512 prompts.",
        "Groups of equal rewards are dropped, in the script those of equal accuracy.",
        "After the last round a step trains on fewer groups; the script ends with an error after 10"
        " batches.",
        "The mean is over the tokens of a minibatch. verl, as of the script, took it over each"
        " micro-batch and weighted a micro-batch by its share of the answers.",
    ),
    audit=(
        "formulas as cited in the file; constants and batch sizes compared with "
        "run_dapo_qwen2.5_32b.sh"
    ),
    shown=("docs/claims.md#reuse",),
)
