"""BAPO: clip bounds adapt to the share of positive tokens. Xi et al., 2025, arXiv:2510.18927."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import AdaptiveClip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def bapo(group_size: PositiveInt = 16, positive_share: Fraction = 0.5) -> Method:
    """PPO's clip with bounds searched for each minibatch.

    The lower bound moves from 0.6 to 0.9, then the upper from 1.2 to 3, until tokens with A > 0
    contribute positive_share of the sum of |clipped r A|. A = (r - mean(r)) / std(r).

    A step makes 8 updates: 2 passes over 4 minibatches.

    Args:
        group_size: rollouts per task (authors' example script: 16).
        positive_share: share of the loss that positive tokens must reach.
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=AdaptiveClip(positive_share=positive_share),
        aggregation=token_mean,
        updates=Updates(epochs=2, minibatches=4),
    )


PAPER = Paper(
    title="BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy "
    "Optimization with Adaptive Clipping",
    use="Rollouts are stale, and tokens with negative advantages dominate the updates.",
    tags=("clipping", "off-policy"),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "WooooDyy/BAPO, recipe/bapo/policy_loss.py, run_bapo_example.sh and README.md",
    ),
    plan="run_bapo_example.sh: train batch 256, minibatch 64 prompts, 2 epochs: 8 updates per step",
    missing=(
        "The dual clip of 3 that the release inherits from verl.",
        "The paper's partial rollouts, whose framework is not released (README.md).",
    ),
    deviations=(
        (
            "The bounds are searched on a minibatch, in the release on a micro-batch of every GPU "
            "together."
        ),
        "The mean is over the tokens of a minibatch, in the release of a micro-batch.",
        (
            "The ranges are those that the README gives as the paper's; the example script has 0.8 "
            "to 0.95 and 1.2 to 2."
        ),
        (
            "Positive tokens are compared with all tokens, as in the paper; the release compares "
            "positive / negative with 0.5."
        ),
        (
            "A token's contribution is not weighted by its probability in the rollout policy, as "
            "in the release; eq. 8 of the paper weights it."
        ),
        (
            "The lower bound moves first, as in the release; algorithm 1 of the paper moves the "
            "upper one first."
        ),
        (
            "positive_share is the README's 0.5, and the steps are 0.05 and 0.1 of the example "
            "script; section 5.1 of the paper has 0.4, and steps of 0.02 and 0.05."
        ),
    ),
    audit=(
        "search, steps, order and batch sizes compared with policy_loss.py and the example script, "
        "ranges with the README; eq. 8, algorithm 1 and section 5.1 with the paper's version 1"
    ),
    shown=("docs/claims.md#reuse",),
)
