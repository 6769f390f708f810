"""Scaf-GRPO: the weakest hint that helps, for one rollout. Zhang et al., 2025, arXiv:2510.19807."""

from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.core.schedules import Switch, as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithScaffold

PAPER = Paper(
    title="Scaf-GRPO: Scaffolded Group Relative Policy Optimization for Enhancing LLM Reasoning",
    use="Some tasks are beyond the model, and each has hints from vague to explicit.",
    checked=("golden", "laws", "run"),
    catalogue=("scaf-grpo",),
)


def scaf_grpo(
    group_size: int = 8,
    max_levels: int = 12,
    warmup_fraction: float = 0.15,
    clip_eps: float = 0.2,
    hint_column: str = "hints",
) -> Method:
    """Where all are wrong, the rollout of the lowest level of hints that is right replaces one.

    The task's `hint_column` holds tiers of hints; a level shows one up to one of its texts, and the
    first `max_levels` are tried once each. The hint stays in that rollout's context. Then GRPO, without
    KL; before the share `warmup_fraction` of the run it is nothing else.
    """
    # The script warms up for 50 steps; a share of the run, 0.15, is our choice. The released
    # builder tries 8 levels, of two of the three tiers; the paper, and this, all 12.
    tried = as_float(Switch(warmup_fraction, 0.0, float(max_levels)))
    sample = WithScaffold(GroupSampler(group_size), tried, hint_column)
    return Method(sampler=sample, loss=Clip(clip_eps, clip_eps))
