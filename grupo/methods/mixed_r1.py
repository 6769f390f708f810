"""Mixed-R1: a reward for each kind of task, in one scale. Xu et al., 2025, arXiv:2505.24164."""

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, chain, identity
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Mixed-R1: Unified Reward Perspective For Reasoning Capability in Multimodal Large"
    " Language Models",
    use="Choices, charts, boxes and captions are trained on together.",
    checked=("golden", "laws", "run"),
    catalogue=("mixed-r1",),
)


def mixed_r1(group_size: int = 8, format_coef: float = 1.0) -> Method:
    """r = reward_terms["correct"] + `format_coef` reward_terms["format"], A = (r - mean(r)) / std(r).

    "correct" in [0, 1] is what `matching`, `chart` or `bmas` of rewards.closeness say, or `iou` of
    rewards.boxes, as the kind of task asks.
    """
    # Only the abstract was seen: the four kinds are the paper's; `chart`'s tolerance, the bound of
    # `bmas` and `format_coef` are our choice.
    r = PerRewardTerm(identity, (("correct", 1.0), ("format", format_coef)))
    return Method(sampler=GroupSampler(group_size), advantage=chain(r, Center(), ScaleByStd()))
