"""LUSPO: GSPO with answers weighted by length. Liu et al., 2026, arXiv:2602.05261."""

from grupo.algo import ratios
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Length-Unbiased Sequence Policy Optimization: Revealing and Controlling Response Length "
    "Variation in RLVR",
    use="Under GSPO answers collapse to short ones.",
    tags=("aggregation", "length", "importance-sampling"),
    trl="loss_type='luspo', importance_sampling_level='sequence', epsilon=2e-3, "
    "epsilon_high=2.5e-3",
    checked=("golden", "properties", "reference", "run"),
)


def luspo(
    group_size: PositiveInt = 8, clip_low: NonNegative = 2e-3, clip_high: NonNegative = 2.5e-3
) -> Method:
    """loss = mean over answers of -L min(s A, clip(s, 1 - clip_low, 1 + clip_high) A), L the
    length.

    s is the geometric mean of the token ratios, A = (r - mean(r)) / std(r): GSPO's loss times L.

    Args:
        group_size: rollouts per task.
        clip_low: s is clipped below at 1 - clip_low (paper: 0.002).
        clip_high: s is clipped above at 1 + clip_high (paper: 0.0025).
    """
    # Clips are section 5.1's as quoted in TRL's index of papers; minibatches are GSPO's.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_low, clip_high, ratios.sequence),
        aggregation=token_sum,
        updates=Updates(minibatches=4),
    )
