"""Elastic Reasoning: thinking and answer have own budgets. Xu et al., 2025, arXiv:2505.05315."""

from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ThinkingBudget

PAPER = Paper(
    title="Scalable Chain of Thoughts via Elastic Reasoning",
    use="Answers must fit a token budget, and truncated thinking loses them.",
    tags=("length",),
    checked=("golden", "properties", "run"),
    catalogue=("elastic-reasoning",),
)


def elastic_reasoning(
    group_size: PositiveInt = 8,
    thinking_tokens: PositiveInt = 1024,
    answer_tokens: PositiveInt = 1024,
    think_end: str = "</think>",
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """GRPO on rollouts with one token budget for the thinking and another for the answer.

    `think_end` is forced where the policy has not generated it within `thinking_tokens`. A = (r -
    mean(r)) / std(r) for both parts. The trained policy also keeps other budgets.

    Args:
        group_size: rollouts per task.
        thinking_tokens: token budget of the thinking.
        answer_tokens: token budget of the answer.
        think_end: text that ends the thinking.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    # The authors' code trains on a forced `think_end` like on sampled tokens; here it is masked.
    # Their temperature is 0.6.
    return Method(
        sampler=GroupSampler(group_size, ThinkingBudget(thinking_tokens, answer_tokens, think_end)),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
