"""CISPO: clip the weight of a token, keep its gradient. Chen et al., 2025, arXiv:2506.13585."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import WeightedReinforce
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import ClippedRatio
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cispo(
    group_size: PositiveInt = 16, clip_high: NonNegative = 4.0, clip_low: NonNegative = 1.0
) -> Method:
    """loss = mean over all tokens of -sg(clip(r, 1 - clip_low, 1 + clip_high)) A log pi.

    A = (r - mean(r)) / std(r). With clip_low = 1 there is no lower bound.

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (ScaleRL, arXiv:2510.13786: 16).
        clip_high: weights are at most 1 + clip_high (ScaleRL, by TRL's index of papers, has a cap
            of 5; the paper tunes it and does not give the value).
        clip_low: weights are at least 1 - clip_low (paper: no lower bound).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=WeightedReinforce(ClippedRatio(clip_low, clip_high)),
        aggregation=token_mean,
        updates=Updates(minibatches=16),
    )


PAPER = Paper(
    title="MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    use="Rare words such as 'however' are clipped away although reasoning depends on them.",
    tags=("clipping", "importance-sampling"),
    equals_grpo_when="there is one update per step",
    trl="loss_type='cispo'; its epsilon_high is the cap itself: 1 + our high",
    verl="loss_mode='cispo', clip_ratio_high = our high; clip_ratio_low=1 for no lower bound",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "paper",
        "section 3.1 and eq. 4 and 5, as quoted in public translations; ScaleRL for the constants",
    ),
    plan="section 3.1: 16 rounds of off-policy updates per generation batch",
    missing=(
        "Dynamic sampling and the length penalty that the paper takes over from DAPO.",
        "The early end of answers that repeat themselves, and the growing length limits.",
    ),
    deviations=(
        (
            "The paper tunes the upper bound and does not give it: the cap of 5 and the group of "
            "16 are ScaleRL's, as TRL's index of papers has them."
        ),
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1; the number of updates with the text of "
        "section 3.1 in public translations"
    ),
    shown=("docs/claims.md#reuse",),
)
