"""AHPO: imitate the expert where the policy fails. Zhao et al., 2025, arXiv:2510.08540."""

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
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution


def ahpo(
    group_size: PositiveInt = 8, min_correct: PositiveInt = 1, clip_eps: NonNegative = 0.2
) -> Method:
    """GRPO, plus the likelihood of an expert solution y where few rollouts are correct.

    loss = GRPO(policy rollouts) - xi / |y| sum_t log pi(y_t), xi = 1 where fewer than min_correct
    of the group's policy rollouts are correct, else 0; y has no ratio, clip or advantage. Tasks
    without a solution are trained by GRPO alone.

    Args:
        group_size: policy rollouts per task (our choice).
        min_correct: number of correct rollouts from which a group does not imitate (our choice: 1,
            so only all-incorrect groups do).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(
            chain(Center(), ScaleByStd()),
            demo_advantage=MaskAdvantage(unit_advantage, TooFewCorrect(min_correct)),
        ),
        loss=SelectBySource(Clip(clip_eps, clip_eps), Reinforce()),
        aggregation=PerSourceMean(sequence_mean),
    )


PAPER = Paper(
    title="MM-HELIX: Boosting Multimodal Long-Chain Reflective Reasoning with Holistic Platform "
    "and Adaptive Hybrid Policy Optimization",
    use="Rewards are too rare for GRPO to make progress, and expert solutions exist.",
    tags=("sft", "off-policy"),
    checked=("golden", "properties", "run"),
    catalogue=("ahpo-mm-helix",),
    source=Source(
        "third_party",
        "a note on the paper (en.papernotes.org); PhoenixZ810/MM-HELIX has generators only",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("The threshold of the gate, which could not be found.",),
    deviations=(
        (
            "The paper sums log pi over the expert solution; the mean over its tokens puts both "
            "terms on one scale."
        ),
        "Group, clip, the mean over answers and the absence of a KL divergence are our choice: no "
        "source that was opened has them.",
    ),
    audit=(
        "formula compared with the catalogue's row and the file's own account; the repository was "
        "opened and has no training code"
    ),
)
