"""AHPO: imitate the expert only where own attempts fail. Zhao et al., 2025, arXiv:2510.08540."""

from grupo.algo.advantages import Center, MaskAdvantage, ScaleByStd, chain
from grupo.algo.aggregation import sequence_mean
from grupo.algo.data_source import unit_advantage
from grupo.algo.losses import (
    Clip,
    PerSourceMean,
    Reinforce,
    SelectBySource,
    SeparateDemos,
    TooFewCorrect,
)
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="MM-HELIX: Boosting Multimodal Long-Chain Reflective Reasoning with Holistic Platform "
    "and Adaptive Hybrid Policy Optimization",
    use="Rewards are so rare that GRPO stands still, and there are solutions to show.",
    checked=("golden", "laws", "run"),
    catalogue=("ahpo-mm-helix",),
)


def ahpo(group_size: int = 8, min_correct: int = 1, clip_eps: float = 0.2) -> Method:
    """GRPO of own rollouts, and the likelihood of the expert's where fewer than `min_correct` are right.

    loss = GRPO(own) - xi / |y| sum_t log pi(y_t), xi = 1 where fewer than `min_correct` of the group's
    own rollouts are right, else 0; no ratio, clip or advantage on y. What a demonstration is
    credited with is xi; tasks without one learn by GRPO alone.
    """
    # The gate was seen in a note on the paper, its threshold not: 1, all wrong, is our choice. The
    # paper sums log pi over y; the mean over its tokens, so that both terms share a scale, is ours.
    own = chain(Center(), ScaleByStd())
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(
            own, demo_advantage=MaskAdvantage(unit_advantage, TooFewCorrect(min_correct))
        ),
        loss=SelectBySource(Clip(clip_eps, clip_eps), Reinforce()),
        aggregation=PerSourceMean(sequence_mean),
    )
