"""LUFFY: every group holds an expert rollout. Yan et al., 2025, arXiv:2504.14945."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip, PolicyShaping, SelectBySource
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="Learning to Reason under Off-Policy Guidance",
    use="The policy rarely succeeds, and solutions of a stronger model are available.",
    tags=("off-policy", "sft"),
    checked=("golden", "properties", "reference", "run"),
    example="luffy(max_length=64)",
)


def luffy(
    max_length: PositiveInt,
    group_size: PositiveInt = 7,
    shaping_constant: NonNegative = 0.1,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """Dr. GRPO on sampled and expert rollouts together; expert tokens have f(pi) in place of a
    ratio.

    The advantage A = r - mean(r) is over both. loss = mean over rollouts of the sum over tokens,
    divided by max_length, of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) for sampled tokens, -f(pi) A for others,
    f(p) = p / (p + shaping_constant). The task's solution is the expert rollout.

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: sampled rollouts per task, beside one of the expert.
        shaping_constant: the constant in f (paper: 0.1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # As in Dr. GRPO, there is no KL, no standard deviation and no length normalisation; so the
    # released scripts, which also drop the clip (on policy that is the same). They add an entropy
    # bonus of 0.001. One variant of the code centres on sampled rollouts alone; the paper, and
    # this, on both.
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=Center(),
        loss=SelectBySource(Clip(clip_eps, clip_eps), PolicyShaping(shaping_constant)),
        aggregation=ConstantLength(max_length),
    )
