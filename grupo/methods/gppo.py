"""GPPO: what the clip would silence keeps a bounded gradient. Su et al., 2025, arXiv:2508.07629."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import ClipPreserveGradient, WeightedReinforce
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Klear-Reasoner: Advancing Reasoning Capability via Gradient-Preserving Clipping Policy "
    "Optimization",
    use="Clipped tokens are the exploring ones, and wrong answers are learned from too slowly.",
    checked=("golden", "laws", "reference", "run"),
)


def gppo(group_size: int = 8, clip_low: float = 0.2, clip_high: float = 0.2) -> Method:
    """-sg(w) A log pi, whose gradient is that of -min(r A, clip(r) A), clipped tokens too.

    w = r, but 1 + `high` where A > 0 and r is above, 1 - `low` where A < 0 and r is below.
    A = (r - mean(r)) / std(r), mean over all tokens.
    """
    # The paper's loss is clip bound / sg(r) * r, of the same gradient. Constants are those of the
    # scripts of Kwai-Klear/CE-GPPO, whose dual clip at 10 is left out; as in ce_gppo.
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClipPreserveGradient(clip_low, clip_high)),
        aggregation=token_mean,
    )
