"""Knapsack RL: more rollouts where outcomes differ. Li et al., 2025, arXiv:2509.25849."""

from grupo.core.numbers import OpenFraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import Knapsack, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def knapsack_rl(
    group_size: PositiveInt = 8,
    min_group_size: PositiveInt = 2,
    max_group_size: PositiveInt = 128,
    confidence: OpenFraction = 0.9,
) -> Method:
    """GRPO with groups of unequal size N_i, min_group_size <= N_i <= max_group_size, on average
    group_size.

    They maximise sum_i (1 - p_i^N_i - (1 - p_i)^N_i) p_i (1 - p_i)^2, p_i the task's last success
    rate. A task never sampled gets group_size. Attempts beyond log(1 - confidence) / log(max(p, 1 -
    p)) for 0 < p < 1 go to tasks of p = 0, or if there are none to those of p = 1.

    Args:
        group_size: mean rollouts per task (authors' script: 8).
        min_group_size: smallest group (authors' script: 2).
        max_group_size: largest group (authors' script: 128).
        confidence: probability of a mixed group that is enough (authors' code: 0.9).
    """
    # A task solved in both of two attempts counts as solved, with p = 0.9 often: it gets
    # min_group_size again.
    curriculum = Knapsack(ShuffledTasks(), group_size, min_group_size, max_group_size, confidence)
    return Method(curriculum=curriculum, sampler=GroupSampler(group_size))


PAPER = Paper(
    title="Knapsack RL: Unlocking Exploration of LLMs via Optimizing Budget Allocation",
    use="Tasks recur, some are always solved and some never, and rollouts dominate the cost.",
    tags=("curriculum", "exploration"),
    checked=("golden", "properties", "run"),
    catalogue=("knapsack-rl",),
    source=Source(
        "code",
        "liziniu/KnapsackRL: verl/trainer/ppo/exploration_utils.py,"
        " verl/utils/dataset/rl_dataset.py and examples/knapsack_trainer/run_knapsack_grpo_7b.sh",
    ),
    plan="our choice, one update per step; run_knapsack_grpo_7b.sh has a train batch of 256 and "
    "minibatches of 32 prompts, 8 updates",
    missing=("The clamp of advantages to [-5, 5] and the dual clip of 10 of the script.",),
    deviations=(
        "The loss is GRPO's with the library's defaults; the script has a token mean of each "
        "micro-batch and clips of 0.2 and 0.28.",
        "p is the success rate of a task's last group; the script takes that of its last 16 "
        "rollouts where the last group is smaller, and n rollouts for a task with fewer than 8.",
        (
            "max_group_size holds for p = 0 and p = 1, too: our choice, so that one hopeless "
            "task does not take a whole step."
        ),
        (
            "The optimum is found greedily, which is exact since marginal gains fall with N; "
            "the code has a dynamic programme."
        ),
        "Tasks that were never drawn have value 0 where rollouts are left over, and a task without"
        " a rollout beyond the smallest size keeps its value; the code counts the former as"
        " unsolved and the latter as worth nothing.",
    ),
    audit=(
        "value, effective tasks, costs and fallback compared with sampling_budget_by_knapsack, "
        "constants and batch sizes with the run script"
    ),
    shown=("docs/claims.md#difficulty",),
)
