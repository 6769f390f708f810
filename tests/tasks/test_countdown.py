"""Countdown: tasks with solutions, and searches by hand."""

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout
from grupo.rewards import AfterMarker, CountdownExpression
from grupo.tasks import CountdownTasks
from grupo.tasks.countdown import (
    ANSWER,
    children,
    countdown_task,
    depth_first_trace,
    solutions,
    start_state,
    terse_trace,
)
from grupo.util.errors import ConfigError

REWARD = CountdownExpression(AfterMarker(ANSWER.strip()))


def score(task, text):
    return REWARD.score(task, Rollout(((task.prompt, Response((1,), (0.0,), text=text)),)))


def test_a_depth_first_search_by_hand():
    # 2+3 fails with 7 in all ways, then 3-2 succeeds with the first
    assert depth_first_trace([2, 3, 7], 8) == (
        "2+3=5 5+7=12 7-5=2 5*7=35 back 3-2=1 1+7=8 answer (3-2)+7"
    )
    assert terse_trace([2, 3, 7], 8) == "2+3=5 12 2 35 back 3-2=1 8 answer (3-2)+7"
    # the pair of the first and the third number comes after all ways of the first two
    trace = depth_first_trace([2, 3, 7], 42)
    assert trace.startswith("2+3=5 5+7=12 7-5=2 5*7=35 back 3-2=1 1+7=8 7-1=6 1*7=7 back 2*3=6 ")
    assert trace.endswith("6+7=13 7-6=1 6*7=42 answer (2*3)*7")


def test_a_search_of_two_numbers_has_one_level():
    assert depth_first_trace([2, 7], 5) == "2+7=9 7-2=5 answer 7-2"
    assert terse_trace([2, 7], 14) == "9 5 14 answer 2*7"


def test_all_solutions_in_the_order_of_the_search():
    assert solutions([2, 3, 7], 8) == ["(3-2)+7", "(7-2)+3", "(3+7)-2", "(7-3)*2"]
    assert solutions([1, 1], 5) == []


def test_equal_numbers_are_different_terms():
    (after_sum, *_) = [state for _, state in children(start_state([5, 5, 2]))]
    assert [term.value for term in after_sum] == [10, 2]
    assert depth_first_trace([5, 5], 0) == "5+5=10 5-5=0 answer 5-5"


def test_every_trace_and_every_solution_is_right_by_the_reward():
    source = CountdownTasks(size=60, seed=3)
    for task in source.load():
        numbers, target = task.columns["numbers"], task.columns["target"]
        assert score(task, depth_first_trace(numbers, target)) == 1.0
        assert score(task, terse_trace(numbers, target)) == 1.0
        for expression in solutions(numbers, target):
            assert score(task, f"{ANSWER}{expression}") == 1.0


def test_four_numbers_have_searches_of_three_levels():
    task = countdown_task([1, 2, 3, 4], 10)
    trace = depth_first_trace([1, 2, 3, 4], 10)
    assert trace == "1+2=3 3+3=6 6+4=10 answer ((1+2)+3)+4"
    assert score(task, trace) == 1.0


def test_tasks_depend_on_the_seed_and_the_index_only():
    prompts = [task.prompt for task in CountdownTasks(size=30, seed=1).load()]
    assert prompts == [CountdownTasks(size=40, seed=1).load()[i].prompt for i in range(30)]
    assert prompts != [task.prompt for task in CountdownTasks(size=30, seed=2).load()]


def test_a_target_without_a_solution_and_too_many_numbers_are_errors():
    with pytest.raises(ValueError, match=r"\[1, 1\] to 5 has no solution"):
        depth_first_trace([1, 1], 5)
    with pytest.raises(ConfigError, match=r"count: 6\. Allowed: 2 to 5"):
        CountdownTasks(count=6)


def test_the_source_returns_from_its_record():
    source = CountdownTasks(10, 2, 4, 6)
    assert from_data(to_data(source)) == source
