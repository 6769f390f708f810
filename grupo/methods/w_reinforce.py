"""W-REINFORCE: failures count ten times a success. Zhu et al., 2025, arXiv:2506.01347."""

from grupo.algo.advantages import SignAdvantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    use="Pass@1 should rise without loss of pass@k at large k.",
    tags=("exploration", "advantage"),
    checked=("golden", "properties", "reference", "run"),
)


def w_reinforce(
    group_size: PositiveInt = 8, positive_advantage: NonNegative = 0.1, clip_eps: NonNegative = 0.2
) -> Method:
    """A = positive_advantage for a correct answer, -1 for a wrong one.

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A). positive_advantage
    = 1 is plain REINFORCE; negative reinforcement alone is `nsr`.

    Args:
        group_size: rollouts per task.
        positive_advantage: advantage of a correct answer (lambda in the paper) (paper: 0.1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # The clipped token mean is the loss of the authors' code.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=SignAdvantage(positive_advantage),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )
