"""Mixed-R1: one reward scale for several kinds of task. Xu et al., 2025, arXiv:2505.24164."""

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, chain, identity
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def mixed_r1(group_size: PositiveInt = 8, format_coef: NonNegative = 1.0) -> Method:
    """A = (r - mean(r)) / std(r), r = correct + format_coef format.

    Reward terms: "format", and "correct" in [0, 1] by `same_word`, `chart_match` or `bmas` of
    rewards.similarity or `iou` of rewards.bounding_box, depending on the kind of task.

    Args:
        group_size: rollouts per task.
        format_coef: weight of the format (our choice).
    """
    reward = PerRewardTerm(identity, (("correct", 1.0), ("format", format_coef)))
    advantage = chain(reward, Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=advantage)


PAPER = Paper(
    title="Mixed-R1: Unified Reward Perspective For Reasoning Capability in Multimodal Large"
    " Language Models",
    use="Multiple-choice, chart, box and caption tasks are trained on together.",
    tags=("multimodal", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("mixed-r1",),
    source=Source(
        "abstract",
        "abstract; the closeness of captions follows its name (the catalogue's row)",
    ),
    plan=(
        "not stated in any source that was opened; one update per step, in which the clip does "
        "not act"
    ),
    missing=("The mixed data set of 45,000 tasks.",),
    deviations=(
        "format_coef, the tolerance of `chart_match` and the bound of `bmas` are our choice.",
        "group_size 8, the clip of 0.2, the mean over answers and no KL divergence are our choice.",
    ),
    audit=(
        "the four rewards of tasks compared with the abstract, the formula with the catalogue's "
        "row; the authors' xushilin1/mixed-r1 could not be opened"
    ),
)
