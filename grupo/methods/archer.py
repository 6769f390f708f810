"""Archer: wide clips at uncertain tokens, a KL elsewhere. Wang et al., 2025, arXiv:2507.15778."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import DualConstraint
from grupo.algo.minibatches import Updates
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def archer(
    group_size: PositiveInt = 16,
    entropy_quantile: Fraction = 0.8,
    clip_eps: NonNegative = 0.2,
    high_entropy_clip_eps: NonNegative = 0.5,
    kl_coef: NonNegative = 0.001,
    high_entropy_kl_coef: NonNegative = 0.0,
) -> Method:
    """PPO's loss with a wider clip at tokens of high entropy, plus k3 elsewhere.

    A token has high entropy if it is at or above the entropy_quantile of its own answer. The loss
    is a token mean over groups whose rewards differ.

    A step makes 6 updates: 3 passes over 2 minibatches. The entropies are the current policy's,
    without gradient.

    Args:
        group_size: rollouts per task.
        entropy_quantile: level of the quantile (released scripts: 0.8).
        clip_eps: width of the clip at low entropy (released scripts: 0.2).
        high_entropy_clip_eps: width of the clip at high entropy (released scripts: 0.5).
        kl_coef: weight of k3 to the reference at low entropy (released scripts: 0.001).
        high_entropy_kl_coef: weight of k3 at high entropy (released scripts: 0).
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=DualConstraint(
            clip_eps, high_entropy_clip_eps, kl_coef, high_entropy_kl_coef, entropy_quantile
        ),
        aggregation=token_mean,
        updates=Updates(epochs=3, minibatches=2),
    )


PAPER = Paper(
    title="Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR",
    use="Reasoning should change while facts and formats, the certain tokens, stay where they are.",
    tags=("entropy", "clipping", "kl"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "wizard-III/ArcherCodeR, verl/trainer/ppo/core_algos.py and "
        "scripts/train/run_archer_qwen2.5_1.5b_code.sh",
    ),
    plan=(
        "run_archer_qwen2.5_1.5b_code.sh: train batch 64, minibatch 32 prompts, 3 epochs: 6 "
        "updates per step, fewer where groups are dropped"
    ),
    missing=("The dual clip of 10 of the release.", "verl's clamp of k3 to +-10."),
    deviations=(
        "A token counts as uncertain at or above the quantile, in the release strictly above it.",
        "The mean of the KL runs over all tokens, in the release over the certain tokens alone.",
        (
            "The mean is over the tokens of a minibatch; the script's micro-batches have one answer"
            " each, so that its token mean is a mean of row means."
        ),
        (
            "Dropped groups leave two smaller minibatches here. The release fills minibatches of 32"
            " prompts, and divides the loss of a smaller last one by the rows of a full one."
        ),
    ),
    audit=(
        "masks, clips, KL weights and batch sizes compared with core_algos.py, dp_actor.py and the "
        "run script"
    ),
    shown=("docs/claims.md#reuse",),
)
