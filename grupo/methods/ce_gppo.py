"""CE-GPPO: clipped tokens keep a gradient to steer entropy. Su et al., 2025, arXiv:2509.20712."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import ClipPreserveGradient, WeightedReinforce
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="CE-GPPO: Coordinating Entropy via Gradient-Preserving Clipping Policy Optimization in "
    "Reinforcement Learning",
    use="Entropy is to be steered by how much clipped tokens of either sign still count.",
    checked=("golden", "laws", "reference", "run"),
)


def ce_gppo(
    group_size: int = 8,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    low_scale: float = 0.75,
    high_scale: float = 1.0,
) -> Method:
    """-sg(w) A log pi; w = r within PPO's clip, and a multiple of the bound beyond it.

    w = `high_scale` (1 + `clip_high`) where A > 0 and r > 1 + `clip_high`: more entropy; `low_scale` (1 - `clip_low`) where
    A < 0 and r < 1 - `clip_low`: less. A = (r - mean(r)) / std(r), mean over all tokens.
    """
    # 0.75 and 1 are those of the authors' 7B script (0.5 and 1 of the 1.5B one), as are clips of
    # 0.2 and 8 answers. The dual clip at 10 that they inherit from verl is left out.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClipPreserveGradient(clip_low, clip_high, low_scale, high_scale)),
        aggregation=token_mean,
    )
