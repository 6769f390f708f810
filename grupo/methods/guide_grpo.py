"""Guide-GRPO: hints where all fail, trained without them. Nath et al., 2025, arXiv:2506.13923."""

from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithHint

PAPER = Paper(
    title="Adaptive Guidance Accelerates Reinforcement Learning of Reasoning Models",
    use="Many tasks are never solved, and a hint can be written for each.",
    tags=("hints", "off-policy", "importance-sampling"),
    checked=("golden", "properties", "run"),
    catalogue=("guide-grpo",),
)


def guide_grpo(
    group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2, hint_column: str = "hint"
) -> Method:
    """GRPO with hinted rollouts for failed tasks, trained as if without the hint.

    Where all group_size plain rollouts are wrong, as many more are sampled with the hint g in the
    prompt; all form one group. A hinted rollout has the ratio pi(o_t | q, o_<t) / old(o_t | q, g,
    o_<t). loss = -min(r A, clip(r, 1 - clip_eps, 1 + clip_eps) A), A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        hint_column: column of the task that holds the hint.
    """
    # That both halves are one group is our reading. To reject hints that give the answer away:
    # .replace(sampler=WithHint(GroupSampler(8), guarded=True)).
    return Method(
        sampler=WithHint(GroupSampler(group_size), hint_column), loss=Clip(clip_eps, clip_eps)
    )
