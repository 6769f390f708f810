"""CE-GPPO: clipped tokens keep a gradient to steer entropy. Su et al., 2025, arXiv:2509.20712."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import ClipPreserveGradient, WeightedReinforce
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="CE-GPPO: Coordinating Entropy via Gradient-Preserving Clipping Policy Optimization in "
    "Reinforcement Learning",
    use="Entropy should be controlled by the gradient of clipped tokens of either sign.",
    tags=("clipping", "entropy"),
    checked=("golden", "properties", "reference", "run"),
)


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

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_low: width of the clip below 1 (authors' script: 0.2).
        clip_high: width of the clip above 1 (authors' script: 0.2).
        low_scale: factor below the clip (authors' 7B script: 0.75; 1.5B: 0.5).
        high_scale: factor above the clip (authors' script: 1).
    """
    # The dual clip at 10 that the authors inherit from verl is left out.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClipPreserveGradient(clip_low, clip_high, low_scale, high_scale)),
        aggregation=token_mean,
    )
