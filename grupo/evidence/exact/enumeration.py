"""Lists all groups of rollouts, with the probability of each, and all steps made of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod

from grupo.algo.filters import Filter
from grupo.core.types import Group, Response, Rollout, Task
from grupo.evidence.exact.environment import FiniteEnv
from grupo.util.errors import ConfigError

Answers = tuple[int, ...]  # numbers of the answers of a group's rollouts
Outcomes = Mapping[Answers, float]  # probability of each group
Step = tuple[Answers, ...]  # the groups that are trained on

MAX_STEPS = 100_000  # minutes


@lru_cache(maxsize=64)
def step_outcomes(env: FiniteEnv, group_size: int, group_filter: Filter) -> Mapping[Step, float]:
    """Probability of each step: one group of each task, without what the filter drops.

    Args:
        env: The environment; its own policy samples the groups.
        group_size: Rollouts in a group.
        group_filter: Filter of the method. It sees one group at a time.

    Raises:
        ConfigError: There are more than `MAX_STEPS` steps.
    """
    count = prod(comb(len(t.answers) + group_size - 1, group_size) for t in env.tasks)
    if count > MAX_STEPS:
        raise ConfigError(
            f"group_size: {group_size} rollouts make {count} different steps of this environment."
            f" Allowed: up to {MAX_STEPS} steps, with fewer rollouts, answers or tasks."
        )
    by_task = [group_outcomes(env, i, group_size, group_filter) for i in range(len(env.tasks))]
    steps: defaultdict[Step, float] = defaultdict(float)
    for groups in product(*(outcomes.items() for outcomes in by_task)):
        kept = tuple(answers for answers, _ in groups if answers)
        steps[kept] += prod(probability for _, probability in groups)
    return steps


def group_outcomes(env: FiniteEnv, task: int, group_size: int, group_filter: Filter) -> Outcomes:
    """Probability of each group of a task after the filter, with its answers in rising order.

    Groups are listed without regard to order, unless the filter selects rollouts: which of equally
    good ones it selects may depend on the order, and then all orders are listed.
    """
    numbers = env.answer_numbers(task)
    groups = [*combinations_with_replacement(numbers, group_size)]
    kept = [select(env, group, group_filter) for group in groups]
    if any(answers not in ((), group) for answers, group in zip(kept, groups, strict=True)):
        return ordered_group_outcomes(env, task, group_size, group_filter)
    probability = _answer_probabilities(env, task)
    weights = (_number_of_orders(group) * prod(probability[a] for a in group) for group in groups)
    return _add_up(zip(kept, weights, strict=True))


def ordered_group_outcomes(
    env: FiniteEnv, task: int, group_size: int, group_filter: Filter
) -> Outcomes:
    """The same from a list of all sequences of answers, whose number is exponential in the size."""
    probability = _answer_probabilities(env, task)
    sequences = product(env.answer_numbers(task), repeat=group_size)
    return _add_up(
        (tuple(sorted(select(env, group, group_filter))), prod(probability[a] for a in group))
        for group in sequences
    )


def select(env: FiniteEnv, answers: Answers, group_filter: Filter) -> Answers:
    """The answers of a group that a filter keeps."""
    rollouts = tuple(_rollout(env, answer, i) for i, answer in enumerate(answers))
    kept = group_filter([Group(Task("finite", ""), rollouts)])
    return tuple(answers[rollout.index] for group in kept for rollout in group.rollouts)


@lru_cache(maxsize=4096)
def _rollout(env: FiniteEnv, answer: int, index: int) -> Rollout:
    length = int(env.mask[answer].sum())
    items = tuple(env.tokens[answer, :length].tolist())
    logp = env.logits.log_softmax(-1)[env.table_rows[answer], env.tokens[answer]]
    response = Response(items, tuple(logp[:length].tolist()))
    reward = env.rewards[answer].item()
    return Rollout((("", response),), reward, {"correct": reward}, index=index)


def _answer_probabilities(env: FiniteEnv, task: int) -> Mapping[int, float]:
    return dict(zip(env.answer_numbers(task), env.tasks[task].probabilities, strict=True))


def _number_of_orders(group: Answers) -> int:
    """Number of sequences that contain the same answers equally often."""
    return factorial(len(group)) // prod(factorial(n) for n in Counter(group).values())


def _add_up(pairs: Iterable[tuple[Answers, float]]) -> Outcomes:
    total: defaultdict[Answers, float] = defaultdict(float)
    for answers, probability in pairs:
        total[answers] += probability
    return total
