"""Knapsack RL: two tasks, sixteen attempts."""

from itertools import product
from math import nan

import pytest

from grupo.core.errors import ConfigError
from grupo.core.types import Group, Rollout, Task
from grupo.methods.knapsack_rl import knapsack_rl
from grupo.rollouts.curricula import CurriculumRequest, Knapsack, ShuffledTasks, expected_gain
from grupo.rollouts.history import History


def value(n, p):
    return (1 - p**n - (1 - p) ** n) * expected_gain(p)


def test_value_of_an_attempt():
    assert value(2, 0.5) / expected_gain(0.5) == 0.5
    assert value(8, 0.1) / expected_gain(0.1) == pytest.approx(0.5695, abs=1e-4)
    assert (expected_gain(0.1), expected_gain(0.5)) == (pytest.approx(0.081), 0.125)


def test_the_hard_task_gets_more():
    assert Knapsack(ShuffledTasks(), 8).allocate([0.1, 0.5]) == [10, 6]
    assert value(10, 0.1) + value(6, 0.5) == pytest.approx(0.1739, abs=1e-4)
    assert value(8, 0.1) + value(8, 0.5) == pytest.approx(0.1702, abs=2e-4)


def test_nothing_is_worth_more_than_what_it_allots():
    rates = (0.05, 0.3, 0.6, 0.95)
    found = Knapsack(ShuffledTasks(), 6, 2, 12).allocate(rates)
    every = (ns for ns in product(range(2, 13), repeat=4) if sum(ns) == 24)
    best = max(every, key=lambda ns: sum(map(value, ns, rates)))
    assert sum(map(value, found, rates)) == pytest.approx(sum(map(value, best, rates)))
    assert sum(found) == 24


def test_what_mixed_tasks_do_not_need_goes_to_the_hopeless():
    # log 0.1 / log 0.5 = 3.3: three each of the 18 beyond 2, so that 12 go to the third
    assert Knapsack(ShuffledTasks(), 8, 2, 16).allocate([0.5, 0.5, 0.0]) == [5, 5, 14]


@pytest.mark.parametrize(
    ("rates", "counts"),
    [
        ([nan, nan, nan], [8, 8, 8]),  # nothing is known
        ([1.0, 1.0, nan], [8, 8, 8]),  # only solved tasks are left to receive attempts
        ([0.0, 1.0], [14, 2]),
        ([0.0, 0.0, 1.0], [11, 11, 2]),
        ([nan, 0.1], [8, 8]),  # a task that is not known gets the average
        ([0.5, 1.0], [5, 11]),
    ],
)
def test_tasks_that_give_no_signal(rates, counts):
    assert Knapsack(ShuffledTasks(), 8).allocate(rates) == counts


def test_no_task_gets_more_than_the_most_while_another_can():
    assert Knapsack(ShuffledTasks(), 4, 2, 5).allocate([0.5, 0.0, 1.0]) == [5, 5, 2]
    assert Knapsack(ShuffledTasks(), 4, 4, 4).allocate([0.0, 0.5]) == [4, 4]


def test_rates_are_those_of_the_last_group():
    tasks, history = [Task("a", ""), Task("b", "")], History()
    for step, right in enumerate((4, 1)):
        rewards = (1.0,) * right + (0.0,) * (10 - right)
        history.append_groups(step, [Group(tasks[0], tuple(Rollout(reward=r) for r in rewards))])
    history.append_groups(0, [Group(tasks[1], (Rollout(reward=1.0), Rollout(reward=0.0)))])
    asked = Knapsack(ShuffledTasks(), 8)(CurriculumRequest(tasks, history, 2, seed=0))
    assert {task.key: task.group_size for task in asked} == {"a": 10, "b": 6}


def test_where_rates_are_known_more_groups_are_mixed_than_with_as_many_attempts_at_each():
    rates = [0.02] * 50 + [0.9] * 50
    counts = Knapsack(ShuffledTasks(), 8).allocate(rates)
    share, even = (
        sum(1 - p**n - (1 - p) ** n for p, n in zip(rates, ns, strict=True)) / 100
        for ns in (counts, [8] * 100)
    )
    assert sum(counts) == 800
    assert even == pytest.approx(0.3596, abs=1e-3)
    assert share == pytest.approx(0.3827, abs=1e-3)  # 6 for each hard one, 10 for each easy
    # what is maximised is gain, not mixed groups: with these rates and at least 2 for each, no
    # allotment mixes a fifth more of them than an even one does
    most = max(
        sum(1 - p**n - (1 - p) ** n for p, n in zip((0.02, 0.9), (hard, 16 - hard), strict=True))
        / 2
        for hard in range(2, 15)
    )
    assert most == pytest.approx(0.4052, abs=1e-3)
    assert share < most < 1.2 * even


def test_invalid_allotments_are_rejected():
    with pytest.raises(
        ConfigError,
        match=r"mean_group_size: 1. Allowed: from min_group_size, 2, to max_group_size, 128.",
    ):
        knapsack_rl(group_size=1)
    with pytest.raises(ConfigError, match=r"confidence: 1.0. Allowed: above 0, below 1."):
        knapsack_rl(confidence=1.0)
