"""Elastic Reasoning: one budget to think, another to answer. Xu et al., 2025, arXiv:2505.05315."""

from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ThinkingBudget

PAPER = Paper(
    title="Scalable Chain of Thoughts via Elastic Reasoning",
    use="Answers have to come within a budget, and thoughts that are cut short lose them.",
    checked=("golden", "laws", "run"),
    catalogue=("elastic-reasoning",),
)


def elastic_reasoning(
    group_size: int = 8,
    thinking_tokens: int = 1024,
    answer_tokens: int = 1024,
    think_end: str = "</think>",
    clip_eps: float = 0.2,
    kl_coef: float = 0.001,
) -> Method:
    """GRPO on `thinking_tokens` tokens of thought, `close` forced where it does not come, `solve` of answer.

    A = (r - mean(r)) / std(r) for both parts. One that has learned so holds other budgets too.
    """
    # In the authors' code a forced `close` is learned like what was sampled: here it is only read.
    # Their temperature is 0.6.
    return Method(
        sampler=GroupSampler(group_size, ThinkingBudget(thinking_tokens, answer_tokens, think_end)),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
