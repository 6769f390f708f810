"""Seq-MIS: masks answers with too large a sequence ratio. Liu et al., 2025, blog post."""

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, IntervalMask
from grupo.algo.token_level import row_sum
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def seq_mis(
    group_size: PositiveInt = 8, cap: Positive = 2.0, clip_eps: NonNegative = 0.2
) -> Method:
    """loss = w x PPO's clipped surrogate, w = prod_t pi_old / pi_sampler up to `cap`, 0 above.

    Rows above cap have no gradient and still count in the mean. Advantages are GRPO's.

    Args:
        group_size: rollouts per task.
        cap: largest sequence weight that is kept (TRL's example of masks and verl's default: 2).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    loss = CorrectedLoss(
        Clip(clip_eps, clip_eps), ImportanceWeight(IntervalMask(0.0, cap), row_sum)
    )
    return Method(sampler=GroupSampler(group_size), loss=loss)


PAPER = Paper(
    title="When Speed Kills Stability: Demystifying RL Collapse from the Training-Inference "
    "Mismatch",
    use="Training collapses under truncated weights; answers with a large mismatch are dropped.",
    tags=("importance-sampling", "off-policy", "filtering"),
    trl="vllm_importance_sampling_clip_max=2.0 (its default mode, 'sequence_mask', but cap, 3)",
    verl="rollout_is='sequence', rollout_is_threshold='1e-9_2.0' (its "
    "rollout_rs='seq_sum_k1' bounds the inverse of the product, on both sides, and masks rows)",
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
        (
            "Weights that are computed anew at every update from the current policy (verl's "
            "bypass mode)."
        ),
    ),
    deviations=(
        "group_size is 8; the post's first runs have 64 prompts of 16 rollouts.",
        "TRL's example of masks also has a lower bound of 0.5.",
        "The clip of 0.2 is the default of TRL and verl. The mean over answers is our choice: both"
        " average over tokens by default.",
    ),
    audit="arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases)",
    shown=("docs/claims.md#engine",),
)
