"""IcePop: masks tokens on which engine and trainer disagree. Ling Team, 2025, arXiv:2510.18855."""

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, IntervalMask
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def icepop(
    group_size: PositiveInt = 8,
    min_ratio: NonNegative = 0.5,
    max_ratio: NonNegative = 5.0,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """loss = M(pi_old / pi_sampler) x PPO's clipped surrogate, M(k) = k in the interval, else 0.

    The interval is [min_ratio, max_ratio]. The mean is over tokens, then over answers; masked
    tokens still count in it.

    Args:
        group_size: rollouts per task (our choice).
        min_ratio: smallest ratio that is kept (verl's documentation of IcePop: 0.5).
        max_ratio: largest ratio that is kept (verl's documentation of IcePop: 5.0).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    loss = CorrectedLoss(
        Clip(clip_eps, clip_eps), ImportanceWeight(IntervalMask(min_ratio, max_ratio))
    )
    return Method(sampler=GroupSampler(group_size), loss=loss)


PAPER = Paper(
    title="Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model",
    use="For mixtures of experts: the engine gives some tokens quite different probabilities.",
    tags=("importance-sampling", "off-policy", "filtering"),
    trl="vllm_importance_sampling_mode='token_mask', vllm_importance_sampling_clip_min=0.5, "
    "vllm_importance_sampling_clip_max=5.0",
    verl="rollout_is='token', rollout_is_threshold='0.5_5.0'",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "TRL's index of papers for the mask, verl's docs/algo/rollout_corr.md for the interval",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        "TRL's example of the mask has the interval from 0.5 to 2.",
        "group_size, clip_eps, the mean over answers and no KL divergence are our choice: the paper"
        " could not be opened.",
    ),
    audit="mask times PPO's surrogate compared with the formula in TRL's index of papers",
    shown=("docs/claims.md#engine",),
)
