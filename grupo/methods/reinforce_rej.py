"""Reinforce-Rej: drops all-right and all-wrong groups. Xiong et al., 2025, arXiv:2504.11343."""

from grupo.algo.advantages import SignAdvantage
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="A Minimalist Approach to LLM Reasoning: from Rejection Sampling to Reinforce",
    use="To test whether selecting groups, not scaling rewards, is what makes GRPO work.",
    tags=("filtering", "advantage"),
    checked=("golden", "properties", "run"),
)


def reinforce_rej(group_size: PositiveInt = 4, clip_eps: NonNegative = 0.2) -> Method:
    """A = 1 for a correct answer, -1 for a wrong one, in groups that have both (eq. 5).

    loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).

    Args:
        group_size: rollouts per task.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    return Method(
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=SignAdvantage(1.0),
        loss=Clip(clip_eps, clip_eps),
    )
