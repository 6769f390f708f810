"""Knapsack RL: attempts where outcomes differ. Li et al., 2025, arXiv:2509.25849."""

from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.curricula import Knapsack, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Knapsack RL: Unlocking Exploration of LLMs via Optimizing Budget Allocation",
    use="Tasks come back, some are solved always and some never, and rollouts are what costs.",
    checked=("golden", "laws", "run"),
    catalogue=("knapsack-rl",),
)


def knapsack_rl(
    group_size: int = 8, min_group_size: int = 2, max_group_size: int = 128, confidence: float = 0.9
) -> Method:
    """GRPO of groups of unequal size: sum_i N_i = P `group_size`, `min_group_size` <= N_i <= `max_group_size`.

    Maximal: sum_i (1 - p_i^N_i - (1 - p_i)^N_i) p_i (1 - p_i)^2, p_i the task's last success rate.
    A task never sampled gets `group_size`. What is beyond log(1 - `confidence`) / log(max(p, 1 - p)) attempts
    for each 0 < p < 1 goes to tasks of p = 0, where there are none to those of p = 1.
    """
    # As the authors' code, where marginal gains fall with N: greedy is exact. `max_group_size` holds for
    # p = 0 and p = 1, too: our choice, so that one hopeless task does not take a whole step. What
    # was right in both of two attempts counts as solved, p = 0.9 often: it then gets `min_group_size` again.
    shared = Knapsack(ShuffledTasks(), group_size, min_group_size, max_group_size, confidence)
    return Method(curriculum=shared, sampler=GroupSampler(group_size))
