"""GPPO: clipped tokens keep a bounded gradient. Su et al., 2025, arXiv:2508.07629."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import ClipPreserveGradient, WeightedReinforce
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Klear-Reasoner: Advancing Reasoning Capability via Gradient-Preserving Clipping Policy "
    "Optimization",
    use="Clipped tokens are the exploring ones, and wrong answers are learned from too slowly.",
    tags=("clipping", "exploration"),
    checked=("golden", "properties", "reference", "run"),
)


def gppo(
    group_size: PositiveInt = 8, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.2
) -> Method:
    """-sg(w) A log pi, the gradient of -min(r A, clip(r) A) that clipped tokens keep.

    w = r, but 1 + clip_high where A > 0 and r is above, 1 - clip_low where A < 0 and r is below. A
    = (r - mean(r)) / std(r), mean over all tokens.

    Args:
        group_size: rollouts per task.
        clip_low: ratios are clipped below at 1 - clip_low (authors' code: 0.2).
        clip_high: ratios are clipped above at 1 + clip_high (authors' code: 0.2).
    """
    # The paper's loss, clip bound / sg(r) * r, has the same gradient. The scripts of
    # Kwai-Klear/CE-GPPO also have a dual clip at 10, which is left out, as in ce_gppo.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClipPreserveGradient(clip_low, clip_high)),
        aggregation=token_mean,
    )
