"""GRPO-D: explore first, stay near the reference later. Liu et al., 2025, arXiv:2503.16081."""

from grupo.algo.losses import KL, Reinforce
from grupo.core.paper import Paper
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="OThink-MR1: Stimulating multimodal generalized reasoning capabilities via dynamic "
    "reinforcement learning",
    use="A constant KL holds the policy back at first, and none lets it drift away at last.",
    checked=("golden", "laws", "run"),
    catalogue=("othink-mr1-grpo-d",),
)


def grpo_d(
    group_size: int = 8, initial_kl_coef: float = 0.0, final_kl_coef: float = 0.04
) -> Method:
    """loss = mean over answers of mean over tokens of -A log pi + b k3, b from `start` to `end`.

    A = (r - mean(r)) / std(r); no clip: one update a step, on policy.
    """
    # That the coefficient grows while the run goes was seen in reviews, its form was not: a
    # straight line to GRPO's 0.04 is our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Reinforce() + Linear(initial_kl_coef, final_kl_coef) * KL(),
    )
