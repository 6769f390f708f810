"""Knapsack RL: two tasks, sixteen attempts."""

from itertools import product
from math import nan

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.types import Group, Rollout, Task
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.rollouts.curricula import CurriculumRequest, Knapsack, ShuffledTasks, task_gain
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.util.errors import ConfigError


def value(n, p):
    return (1 - p**n - (1 - p) ** n) * task_gain(p)


def test_value_of_attempt():
    assert value(2, 0.5) / task_gain(0.5) == 0.5
    assert value(8, 0.1) / task_gain(0.1) == pytest.approx(0.5695, abs=1e-4)
    assert (task_gain(0.1), task_gain(0.5)) == (pytest.approx(0.081), 0.125)


def test_hard_task_receives_more_attempts():
    assert Knapsack(ShuffledTasks(), 8).allocate([0.1, 0.5]) == [10, 6]
    assert value(10, 0.1) + value(6, 0.5) == pytest.approx(0.1739, abs=1e-4)
    assert value(8, 0.1) + value(8, 0.5) == pytest.approx(0.1702, abs=2e-4)


def test_allocation_has_maximal_total_value():
    rates = (0.05, 0.3, 0.6, 0.95)
    allocation = Knapsack(ShuffledTasks(), 6, 2, 12).allocate(rates)
    allocations = (ns for ns in product(range(2, 13), repeat=4) if sum(ns) == 24)
    best = max(allocations, key=lambda ns: sum(map(value, ns, rates)))
    assert sum(map(value, allocation, rates)) == pytest.approx(sum(map(value, best, rates)))
    assert sum(allocation) == 24


def test_surplus_budget_goes_to_unsolved_tasks():
    # log 0.1 / log 0.5 = 3.3: three each of the 18 beyond 2, so that 12 go to the third
    assert Knapsack(ShuffledTasks(), 8, 2, 16).allocate([0.5, 0.5, 0.0]) == [5, 5, 14]


@pytest.mark.parametrize(
    ("rates", "counts"),
    [
        ([nan, nan, nan], [8, 8, 8]),  # no success rate is known
        ([1.0, 1.0, nan], [8, 8, 8]),  # only solved tasks are left to receive attempts
        ([0.0, 1.0], [14, 2]),
        ([0.0, 0.0, 1.0], [11, 11, 2]),
        ([nan, 0.1], [8, 8]),  # a task without a success rate has the average
        ([0.5, 1.0], [5, 11]),
    ],
)
def test_allocation_for_uninformative_tasks(rates, counts):
    assert Knapsack(ShuffledTasks(), 8).allocate(rates) == counts


def test_maximum_allocation_is_respected():
    assert Knapsack(ShuffledTasks(), 4, 2, 5).allocate([0.5, 0.0, 1.0]) == [5, 5, 2]
    assert Knapsack(ShuffledTasks(), 4, 4, 4).allocate([0.0, 0.5]) == [4, 4]


def test_success_rates_come_from_last_group():
    knapsack = Knapsack(ShuffledTasks(), 8)
    tasks = [Task("a", ""), Task("b", "")]
    history = History(statistics_by_task=StatisticStore(knapsack.requires.task_statistics))
    for step, right in enumerate((4, 1)):
        rewards = (1.0,) * right + (0.0,) * (10 - right)
        history.append_groups(step, [Group(tasks[0], tuple(Rollout(reward=r) for r in rewards))])
    history.append_groups(0, [Group(tasks[1], (Rollout(reward=1.0), Rollout(reward=0.0)))])
    requests = knapsack(CurriculumRequest(tasks, history, 2, seed=0))
    assert {task.key: task.group_size for task in requests} == {"a": 10, "b": 6}


def test_known_success_rates_increase_fraction_of_mixed_groups():
    rates = [0.02] * 50 + [0.9] * 50
    counts = Knapsack(ShuffledTasks(), 8).allocate(rates)
    mixed_fraction, uniform_fraction = (
        sum(1 - p**n - (1 - p) ** n for p, n in zip(rates, ns, strict=True)) / 100
        for ns in (counts, [8] * 100)
    )
    assert sum(counts) == 800
    assert uniform_fraction == pytest.approx(0.3596, abs=1e-3)
    assert mixed_fraction == pytest.approx(
        0.3827, abs=1e-3
    )  # 6 for each hard one, 10 for each easy
    # what is maximised is gain, not mixed groups: with these rates and at least 2 for each, no
    # allotment mixes a fifth more of them than an even one does
    best_fraction = max(
        sum(1 - p**n - (1 - p) ** n for p, n in zip((0.02, 0.9), (hard, 16 - hard), strict=True))
        / 2
        for hard in range(2, 15)
    )
    assert best_fraction == pytest.approx(0.4052, abs=1e-3)
    assert mixed_fraction < best_fraction < 1.2 * uniform_fraction


def test_loss_and_update_plan_are_those_of_the_script():
    method = knapsack_rl()
    assert (method.loss, method.aggregation) == (Clip(0.2, 0.28), token_mean)
    assert method.updates == Updates(minibatches=8)


def test_invalid_allocations_are_rejected():
    with pytest.raises(
        ConfigError,
        match=r"mean_group_size: 1. Allowed: from min_group_size, 2, to max_group_size, 128.",
    ):
        knapsack_rl(group_size=1)
    with pytest.raises(ConfigError, match=r"confidence: 1.0. Allowed: above 0, below 1."):
        knapsack_rl(confidence=1.0)
