"""BAPO: clips open until good tokens weigh their share. Xi et al., 2025, arXiv:2510.18927."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import AdaptiveClip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy "
    "Optimization with Adaptive Clipping",
    use="Rollouts are old and bad tokens dominate the updates.",
    checked=("golden", "laws", "reference", "run"),
)


def bapo(group_size: int = 8, positive_share: float = 0.5) -> Method:
    """PPO's clip at bounds found anew for each minibatch: the lower from 0.6 to 0.9, then the upper
    from 1.2 to 3, until tokens with A > 0 make up `positive_share` of it. A = (r - mean(r)) / std(r).
    """
    # Ranges and 0.5 of the README of WooooDyy/BAPO, steps of 0.05 and 0.1 of its script. Its code
    # moves the lower bound first, as here, but holds good / bad, not good / all, against 0.5.
    return Method(
        sampler=GroupSampler(group_size),
        loss=AdaptiveClip(positive_share=positive_share),
        aggregation=token_mean,
    )
