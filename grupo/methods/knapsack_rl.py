"""Knapsack RL: more rollouts where outcomes differ. Li et al., 2025, arXiv:2509.25849."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
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

    loss = mean over all tokens of -min(R A, clip(R, 0.8, 1.28) A) with R = pi / old.

    A step makes 8 updates, one on each of 8 minibatches.

    Args:
        group_size: mean rollouts per task (authors' script: 8).
        min_group_size: smallest group (authors' script: 2).
        max_group_size: largest group (authors' script: 128).
        confidence: probability of a mixed group that is enough (authors' code: 0.9).
    """
    # A task solved in both of two attempts counts as solved, with p = 0.9 often: it gets
    # min_group_size again.
    curriculum = Knapsack(ShuffledTasks(), group_size, min_group_size, max_group_size, confidence)
    return Method(
        curriculum=curriculum,
        sampler=GroupSampler(group_size),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
        updates=Updates(minibatches=8),
    )


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
    plan="run_knapsack_grpo_7b.sh: a train batch of 256 prompts, 2,048 rollouts, in minibatches of "
    "256 rollouts: 8 updates per step",
    missing=(
        "The clamp of advantages to [-5, 5] and the dual clip of 10 of the script.",
        "The script's weight of trainer over engine with a cap of 2, which has no effect there: "
        "the code multiplies by it after the mean.",
    ),
    deviations=(
        "A minibatch holds whole groups, an eighth of the step's; the code cuts the step into "
        "equal numbers of rollouts, and through groups.",
        "The mean is over the tokens of a minibatch, in the code over those of a micro-batch,"
        " which counts by its share of the rollouts.",
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
        "clips, mean, constants and batch sizes with the run script"
    ),
    shown=("docs/claims.md#difficulty",),
)
