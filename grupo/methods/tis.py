"""TIS: truncated importance weights, trainer over engine. Yao et al., 2025, blog post."""

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, TruncatedIS
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def tis(group_size: PositiveInt = 8, cap: Positive = 2.0, clip_eps: NonNegative = 0.2) -> Method:
    """loss = min(pi_old / pi_sampler, cap) x PPO's clipped surrogate, token by token.

    pi_old is the trainer's policy before the update, pi_sampler the engine that sampled; the weight
    is a constant. Advantages are GRPO's.

    Args:
        group_size: rollouts per task.
        cap: largest weight, tis_imp_ratio_cap of the released scripts.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    loss = CorrectedLoss(Clip(clip_eps, clip_eps), ImportanceWeight(TruncatedIS(cap)))
    return Method(sampler=GroupSampler(group_size), loss=loss)


PAPER = Paper(
    title="Your Efficient RL Framework Secretly Brings You Off-Policy RL Training",
    use="The inference engine computes with other numerics than the trainer; the mismatch is "
    "moderate.",
    tags=("importance-sampling", "off-policy"),
    trl="vllm_importance_sampling_mode='token_truncate', vllm_importance_sampling_clip_max=2.0",
    verl="rollout_is='token', rollout_is_threshold=2.0",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "verl's rollout correction and TRL's paper index, which quotes the post",
    ),
    plan="not stated in any source that was opened; one update per step",
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); the surrogate as TRL's "
        "paper index quotes the post"
    ),
    shown=("docs/claims.md#engine",),
)
