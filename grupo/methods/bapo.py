"""BAPO: clip bounds adapt to the share of positive tokens. Xi et al., 2025, arXiv:2510.18927."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import AdaptiveClip
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy "
    "Optimization with Adaptive Clipping",
    use="Rollouts are stale, and tokens with negative advantages dominate the updates.",
    tags=("clipping", "off-policy"),
    checked=("golden", "properties", "reference", "run"),
)


def bapo(group_size: PositiveInt = 8, positive_share: Fraction = 0.5) -> Method:
    """PPO's clip with bounds searched for each minibatch.

    The lower bound moves from 0.6 to 0.9, then the upper from 1.2 to 3, until tokens with A > 0
    contribute positive_share of the sum of |clipped r A|. A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task.
        positive_share: share of the loss that positive tokens must reach.
    """
    # Ranges and 0.5 of the README of WooooDyy/BAPO, steps of 0.05 and 0.1 of its script. Its code
    # moves the lower bound first, as here, but compares positive / negative, not positive / all,
    # with 0.5.
    return Method(
        sampler=GroupSampler(group_size),
        loss=AdaptiveClip(positive_share=positive_share),
        aggregation=token_mean,
    )
