"""KDRL: distillation and RL on the same rollouts. Xu et al., 2025, arXiv:2506.02208."""

from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k2
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def kdrl(
    group_size: PositiveInt = 8,
    initial_kl_coef: NonNegative = 5e-3,
    final_kl_coef: NonNegative = 1e-3,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """GRPO with k2 to a teacher in place of the KL to a reference.

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + b k2 with k2 =
    (log pi - log teacher)^2 / 2, whose on-policy gradient is that of KL(pi, teacher), and b falling
    linearly over the run. The recipe defines "teacher".

    Args:
        group_size: rollouts per task (our choice).
        initial_kl_coef: b at the start of the run (from a review of the paper).
        final_kl_coef: b at its end (from a review of the paper).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    loss = Clip(clip_eps, clip_eps) + Linear(initial_kl_coef, final_kl_coef) * KL(k2, "teacher")
    return Method(sampler=GroupSampler(group_size), loss=loss, aggregation=token_mean)


PAPER = Paper(
    title="KDRL: Post-Training Reasoning LLMs via Unified Knowledge Distillation and "
    "Reinforcement Learning",
    use="A stronger teacher has the policy's vocabulary, and the reward may go beyond it.",
    tags=("distillation", "kl"),
    checked=("golden", "properties", "run"),
    catalogue=("kdrl",),
    source=Source(
        "third_party",
        "a review of the paper (themoonlight.io) and a blog page for the ends of the "
        "schedule (the catalogue's row)",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The masked variants, which distil where the reward failed: WhereLoss(KL(k2, "
            '"teacher"), IncorrectRollouts()) for each rollout, AllIncorrectGroups() for whole '
            "groups."
        ),
        "Stages of RL with a growing response length.",
    ),
    deviations=(
        'k2 has no ratio off policy: CorrectedKL(other_policy="teacher") is unbiased there.',
        "The linear decay of the coefficient over the whole run is our reading.",
        "group_size and clip_eps are our choice: the review writes the ratio without a clip.",
    ),
    audit=(
        "objective (token mean, GRPO's advantage, KL to the teacher) compared with the "
        "review; coefficients with the catalogue's row"
    ),
)
