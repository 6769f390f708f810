"""GPPO: clipped tokens keep a bounded gradient. Su et al., 2025, arXiv:2508.07629."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import ClipPreserveGradient, WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gppo(
    group_size: PositiveInt = 8, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.28
) -> Method:
    """-sg(w) A log pi, the gradient of -min(r A, clip(r) A) that clipped tokens keep.

    w = r, but 1 + clip_high where A > 0 and r is above, 1 - clip_low where A < 0 and r is below. A
    = (r - mean(r)) / std(r), mean over all tokens.

    A step has 8 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_low: ratios are clipped below at 1 - clip_low (authors' script: 0.2).
        clip_high: ratios are clipped above at 1 + clip_high (authors' script: 0.28).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClipPreserveGradient(clip_low, clip_high)),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


PAPER = Paper(
    title="Klear-Reasoner: Advancing Reasoning Capability via Gradient-Preserving Clipping Policy "
    "Optimization",
    use="Clipped tokens are the exploring ones, and wrong answers are learned from too slowly.",
    tags=("clipping", "exploration"),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "suu990901/KlearReasoner: compute_gppo_loss in verl/trainer/ppo/core_algos.py, "
        "recipe/dapo/perf_run_dapo_ours_math.sh",
    ),
    plan=(
        "perf_run_dapo_ours_math.sh: 128 prompts per step in minibatches of 16, 8 updates "
        "(perf_run_dapo_ours_code.sh: of 32, 4 updates)"
    ),
    missing=(
        "An imitation loss on correct answers, weight 0.1 (positive_loss_coeff in both scripts).",
        "The dual clip at 10 of the scripts, beyond which tokens with A < 0 have no gradient.",
        "Groups of equal accuracy are dropped in the scripts: .replace(filter=keep_nonzero_std). "
        "The scripts generate 256 prompts and train on at most 128 of those that remain.",
    ),
    deviations=(
        (
            "The value of the loss differs from the release's, clip bound / sg(r) * r; the "
            "gradient is the same."
        ),
        "The mean is over the tokens of a minibatch, in the release of a micro-batch.",
    ),
    audit="gradient compared with compute_gppo_loss, constants and plan with both run scripts",
    shown=("docs/claims.md#reuse",),
)
