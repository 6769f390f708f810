"""DAPO: keep every group informative and every token equal. Yu et al., 2025, arXiv:2503.14476."""

from grupo.algo.advantages import Center, OverlongPenalty, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    use="Long answers, many tasks that all rollouts solve or none, and entropy that collapses.",
    trl="loss_type='dapo', epsilon_high=0.28, mask_truncated_completions; no dynamic sampling",
    verl="the recipe dapo: clip_ratio_high=0.28, loss_agg_mode='token-mean', filter_groups, "
    "overlong_buffer",
    checked=("golden", "laws", "run"),
    example="dapo(max_length=64, overlong_buffer=16)",
)


def dapo(
    max_length: int,
    overlong_buffer: int,
    group_size: int = 16,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    max_resample_rounds: int = 10,
) -> Method:
    """Clip-higher, dynamic sampling, token mean and a soft penalty for overlong answers.

    loss = mean over all tokens of the batch of -min(R A, clip(R, 1 - `clip_low`, 1 + `clip_high`) A)
    with R = pi / old and A = (r - mean(r)) / std(r) over groups where 0 < number right < G
    (eq. 8 to 12); r falls by up to 1 over the last `overlong_buffer` of `max_length` tokens (eq. 13; 4,096 of
    20,480 there).
    """
    # `max_resample_rounds` is max_num_gen_batches of the released scripts. The paper takes 16 updates a step
    # (section 4.1): .replace(updates=Updates(minibatches=16)).
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(OverlongPenalty(max_length, overlong_buffer), Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
    )
