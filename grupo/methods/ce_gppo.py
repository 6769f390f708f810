"""CE-GPPO: clipped tokens keep a gradient to steer entropy. Su et al., 2025, arXiv:2509.20712."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import ClipPreserveGradient, WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ce_gppo(
    group_size: PositiveInt = 8,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.2,
    low_scale: NonNegative = 0.75,
    high_scale: NonNegative = 1.0,
) -> Method:
    """-sg(w) A log pi; w = r within PPO's clip, and a multiple of the bound beyond it.

    w = high_scale (1 + clip_high) where A > 0 and r > 1 + clip_high, which raises entropy;
    w = low_scale (1 - clip_low) where A < 0 and r < 1 - clip_low, which lowers it.
    A = (r - mean(r)) / std(r), mean over all tokens.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_low: width of the clip below 1 (authors' script: 0.2).
        clip_high: width of the clip above 1 (authors' script: 0.2).
        low_scale: factor below the clip (authors' 7B script: 0.75; 1.5B: 0.5).
        high_scale: factor above the clip (authors' script: 1).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClipPreserveGradient(clip_low, clip_high, low_scale, high_scale)),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


PAPER = Paper(
    title="CE-GPPO: Coordinating Entropy via Gradient-Preserving Clipping Policy Optimization in "
    "Reinforcement Learning",
    use="Entropy should be controlled by the gradient of clipped tokens of either sign.",
    tags=("clipping", "entropy"),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "Kwai-Klear/CE-GPPO, recipe/dapo/7B_perf_run_gppo_v1_beta1_075_beta2_1_ours_math.sh",
    ),
    plan=(
        "7B_perf_run_gppo_v1_beta1_075_beta2_1_ours_math.sh: train batch 128, minibatch 16 "
        "prompts: 8 updates per step"
    ),
    missing=(
        (
            "The group filter of the scripts, which generate 256 groups and train on 128 of those "
            "whose accuracies differ, or on fewer where fewer differ."
        ),
        "The dual clip of 10.",
        (
            "An imitation loss of both scripts: 0.1 times the token mean of -log pi over correct "
            "rollouts (positive_loss_coeff)."
        ),
    ),
    deviations=("The mean is over the tokens of a minibatch, in the release of a micro-batch.",),
    audit=(
        "loss, constants and batch sizes compared with compute_gppo_loss_general_beta and the 7B "
        "and 1.5B scripts"
    ),
    shown=("docs/claims.md#reuse",),
)
