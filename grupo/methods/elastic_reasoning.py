"""Elastic Reasoning: one budget to think, another to answer. Xu et al., 2025, arXiv:2505.05315."""

from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent
from grupo.rollouts.turns import Budgeted

PAPER = Paper(
    title="Scalable Chain of Thoughts via Elastic Reasoning",
    use="Answers have to come within a budget, and thoughts that are cut short lose them.",
    checked=("golden", "laws", "run"),
    catalogue=("elastic-reasoning",),
)


def elastic_reasoning(
    group: int = 8,
    think: int = 1024,
    solve: int = 1024,
    close: str = "</think>",
    clip: float = 0.2,
    kl: float = 0.001,
) -> Method:
    """GRPO on `think` tokens of thought, `close` forced where it does not come, `solve` of answer.

    A = (r - mean(r)) / std(r) for both parts. One that has learned so holds other budgets too.
    """
    # In the authors' code a forced `close` is learned like what was sampled: here it is only read.
    # Their temperature is 0.6.
    return Method(
        sample=Independent(group, Budgeted(think, solve, close)),
        loss=Clip(clip, clip) + kl * KL(),
    )
