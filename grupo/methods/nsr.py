"""NSR: trains on wrong answers only. Zhu et al., 2025, arXiv:2506.01347."""

from grupo.algo.advantages import SignAdvantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    use="The policy already solves the tasks and must not lose its other ways to do so.",
    tags=("exploration", "filtering"),
    checked=("golden", "properties", "reference", "run"),
)


def nsr(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2) -> Method:
    """A = 0 for a correct answer, -1 for a wrong one: negative sample reinforcement.

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).

    Args:
        group_size: rollouts per task.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # The mean includes the tokens of correct answers, as in the authors' code.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SignAdvantage(0.0),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )
