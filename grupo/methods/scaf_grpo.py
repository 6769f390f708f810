"""Scaf-GRPO: the weakest sufficient hint, for one rollout. Zhang et al., 2025, arXiv:2510.19807."""

from grupo.algo.losses import Clip
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.core.schedules import Switch
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithScaffold

PAPER = Paper(
    title="Scaf-GRPO: Scaffolded Group Relative Policy Optimization for Enhancing LLM Reasoning",
    use="Some tasks are beyond the policy, and each has hints from vague to explicit.",
    tags=("hints", "off-policy"),
    checked=("golden", "properties", "run"),
    catalogue=("scaf-grpo",),
)


def scaf_grpo(
    group_size: PositiveInt = 8,
    max_levels: PositiveInt = 12,
    warmup_fraction: Fraction = 0.15,
    clip_eps: NonNegative = 0.2,
    hint_column: str = "hints",
) -> Method:
    """Where all rollouts are wrong, one is replaced by a hinted rollout of the weakest sufficient
    level.

    The task's hint_column holds tiers of hints; a level shows one tier up to one of its texts, and
    the first max_levels are tried once each. The hint stays in that rollout's context. Otherwise
    GRPO without KL; before warmup_fraction of the run no hints are used.

    Args:
        group_size: rollouts per task.
        max_levels: hint levels that are tried (paper: 12).
        warmup_fraction: fraction of the run without hints (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        hint_column: column of the task that holds the hints.
    """
    # The script warms up for 50 steps. The released builder tries 8 levels, of two of the three
    # tiers; the paper, and this, all 12.
    num_levels = Switch(warmup_fraction, 0.0, float(max_levels))
    sampler = WithScaffold(GroupSampler(group_size), num_levels, hint_column)
    return Method(sampler=sampler, loss=Clip(clip_eps, clip_eps))
