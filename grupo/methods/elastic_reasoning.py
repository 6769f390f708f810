"""Elastic Reasoning: thinking and answer have own budgets. Xu et al., 2025, arXiv:2505.05315."""

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ThinkingBudget


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
    mean(r)) / std(r) for both parts.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task.
        thinking_tokens: token budget of the thinking.
        answer_tokens: token budget of the answer.
        think_end: text that ends the thinking.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    return Method(
        sampler=GroupSampler(group_size, ThinkingBudget(thinking_tokens, answer_tokens, think_end)),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Scalable Chain of Thoughts via Elastic Reasoning",
    use="Answers must fit a token budget, and truncated thinking loses them.",
    tags=("length",),
    checked=("golden", "properties", "run"),
    catalogue=("elastic-reasoning",),
    source=Source(
        "code",
        "SalesforceAIResearch/Elastic-Reasoning, scripts/e1-math/e1_math_1.5b_1k_1k.sh and "
        "vllm_rollout.py",
    ),
    plan="e1_math_1.5b_1k_1k.sh: train batch 128, minibatch 64 prompts: 2 updates per step",
    missing=("Sampling at temperature 0.6, which is a choice of the recipe.",),
    deviations=(
        "A forced `think_end` is masked; the release trains on it like on sampled tokens.",
        (
            "The mean over answers is GRPO's; the release has the token mean of a micro-batch and "
            "verl's entropy bonus of 0.001."
        ),
    ),
    audit="budgets, KL, group and batch sizes compared with the script",
    shown=("tests/methods/test_toys.py::test_budgeted_training_answers_within_budget",),
)
