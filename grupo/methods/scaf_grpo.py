"""Scaf-GRPO: the weakest hint that helps, for one rollout. Zhang et al., 2025, arXiv:2510.19807."""

from grupo.algo.losses import Clip
from grupo.core.paper import Paper
from grupo.core.schedules import Switch, varying
from grupo.method import Method
from grupo.rollouts.samplers import Independent, Scaffolded

PAPER = Paper(
    title="Scaf-GRPO: Scaffolded Group Relative Policy Optimization for Enhancing LLM Reasoning",
    use="Some tasks are beyond the model, and each has hints from vague to explicit.",
    checked=("golden", "laws", "run"),
    catalogue=("scaf-grpo",),
)


def scaf_grpo(
    group: int = 8, levels: int = 12, warmup: float = 0.15, clip: float = 0.2, column: str = "hints"
) -> Method:
    """Where all are wrong, the rollout of the lowest level of hints that is right replaces one.

    The task's `column` holds tiers of hints; a level shows one up to one of its texts, and the
    first `levels` are tried once each. The hint stays in that rollout's context. Then GRPO, without
    KL; before the share `warmup` of the run it is nothing else.
    """
    # The script warms up for 50 steps; a share of the run, 0.15, is our choice. The released
    # builder tries 8 levels, of two of the three tiers; the paper, and this, all 12.
    tried = varying(Switch(warmup, 0.0, float(levels)))
    sample = Scaffolded(Independent(group), tried, column)
    return Method(sample=sample, loss=Clip(clip, clip))
