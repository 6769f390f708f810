"""Seq-TIS: truncated sequence-level importance weights. Liu et al., 2025, blog post."""

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, TruncatedIS
from grupo.algo.token_level import row_sum
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def seq_tis(
    group_size: PositiveInt = 8, cap: Positive = 2.0, clip_eps: NonNegative = 0.2
) -> Method:
    """loss = min(prod_t pi_old / pi_sampler, cap) x PPO's clipped surrogate.

    All tokens of a row have one constant weight: the unbiased importance ratio of the answer,
    truncated. Advantages are GRPO's.

    Args:
        group_size: rollouts per task.
        cap: largest sequence weight (verl and TRL's index of papers: 2; TRL's default: 3).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    loss = CorrectedLoss(Clip(clip_eps, clip_eps), ImportanceWeight(TruncatedIS(cap), row_sum))
    return Method(sampler=GroupSampler(group_size), loss=loss)


PAPER = Paper(
    title="When Speed Kills Stability: Demystifying RL Collapse from the Training-Inference "
    "Mismatch",
    use="The engine's mismatch biases token-level weights, and answers are short.",
    tags=("importance-sampling", "off-policy"),
    trl="vllm_importance_sampling_mode='sequence_truncate', vllm_importance_sampling_clip_max=2.0",
    verl="rollout_is='sequence', rollout_is_threshold=2.0",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        (
            "verl's rollout correction and TRL's vllm_importance_sampling_mode; the post was not "
            "available beyond its beginning"
        ),
    ),
    plan=(
        "the post's first runs train on 1024 rollouts in one update, or in 4 of 256: one update "
        "per step"
    ),
    missing=(
        "Weights that are computed anew at every update from the current policy (verl's bypass"
        " mode).",
    ),
    deviations=(
        "group_size is 8; the post's first runs have 64 prompts of 16 rollouts.",
        "The clip of 0.2 is the default of TRL and verl. The mean over answers is our choice: both"
        " average over tokens by default.",
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); the estimator as TRL's "
        "paper index quotes the post"
    ),
)
