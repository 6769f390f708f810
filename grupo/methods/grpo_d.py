"""GRPO-D: the KL weight grows during the run. Liu et al., 2025, arXiv:2503.16081."""

from grupo.algo.losses import KL, Reinforce
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo_d(
    group_size: PositiveInt = 8,
    initial_kl_coef: NonNegative = 0.0,
    final_kl_coef: NonNegative = 0.04,
) -> Method:
    """loss = mean over answers of mean over tokens of -A log pi + b k3, with b growing linearly.

    A = (r - mean(r)) / std(r); no clip: one update a step, on policy.

    Args:
        group_size: rollouts per task (our choice).
        initial_kl_coef: b at the start of the run (our choice).
        final_kl_coef: b at its end (GRPO's value).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Reinforce() + Linear(initial_kl_coef, final_kl_coef) * KL(),
    )


PAPER = Paper(
    title="OThink-MR1: Stimulating multimodal generalized reasoning capabilities via dynamic "
    "reinforcement learning",
    use="A constant KL slows learning at first, and without it the policy drifts at the end.",
    tags=("kl",),
    equals_grpo_when="there is one update per step",
    checked=("golden", "properties", "run"),
    catalogue=("othink-mr1-grpo-d",),
    source=Source("third_party", "a review of the paper, for the direction of the schedule only"),
    plan="not stated in any source that was opened; one update per step",
    missing=("The two rewards of the paper, accuracy and format.",),
    deviations=(
        (
            "The growth is linear over the run, from 0 to GRPO's 0.04: reviews mention that the"
            " coefficient grows, not its form or values."
        ),
        "group_size is our choice, 8.",
    ),
    audit="compared with the catalogue's row alone; no document could be opened",
)
