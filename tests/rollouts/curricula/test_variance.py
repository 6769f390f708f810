"""Variance-aware sampling: scores of three tasks, and the tasks that are drawn by them."""

from collections import Counter
from dataclasses import replace

import pytest

from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.curricula import CurriculumRequest, VarianceAware, next_tasks
from grupo.rollouts.curricula.variance import interleave
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore

TASKS = [Task(str(i), "?") for i in range(3)]
OUTCOME = VarianceAware(outcome_coef=1.0, diversity_coef=0.0, floor=0.0)


def group(task, rewards, diversity=0.0):
    terms = {"diversity": diversity}
    return Group(task, tuple(Rollout(reward=r, reward_terms=terms) for r in rewards))


def request(curriculum, *steps, num_tasks=8, num_tasks_drawn=0):
    """A request after steps of groups."""
    history = History(
        num_tasks_drawn=num_tasks_drawn,
        statistics_by_task=StatisticStore(tuple(curriculum.requires.task_statistics)),
    )
    for step, groups in enumerate(steps):
        history.append_groups(step, groups)
    return CurriculumRequest(TASKS, history, num_tasks, seed=0)


SOLVED_BY_HALF = [group(TASKS[0], [0, 0]), group(TASKS[1], [0, 1]), group(TASKS[2], [1, 1])]


def test_only_the_undecided_task_has_weight():
    assert OUTCOME.weights(request(OUTCOME, SOLVED_BY_HALF)) == [0.0, 1.0, 0.0]  # 0, 1/4, 0


def test_half_of_the_batch_is_the_undecided_task_and_half_is_shuffled():
    asked = request(OUTCOME, SOLVED_BY_HALF)
    tasks = OUTCOME(asked)
    assert [task.key for task in tasks[::2]] == ["1"] * 4
    assert list(tasks[1::2]) == next_tasks(replace(asked, num_tasks=4))


def test_the_shuffled_half_goes_through_all_tasks():
    steps = [
        OUTCOME(request(OUTCOME, SOLVED_BY_HALF, num_tasks=2, num_tasks_drawn=2 * i))[1:]
        for i in range(6)
    ]
    assert Counter(task.key for tasks in steps for task in tasks) == {"0": 2, "1": 2, "2": 2}


def test_diversity_is_added_before_the_scores_are_scaled():
    curriculum = VarianceAware(floor=0.0)
    groups = [
        group(TASKS[0], [0, 1], diversity=0.5),  # 0.8 / 4 + 0.2 / 2 = 0.3
        group(TASKS[1], [0, 0], diversity=1.0),  # 0.2
        group(TASKS[2], [1, 1], diversity=0.5),  # 0.1
    ]
    assert curriculum.weights(request(curriculum, groups)) == pytest.approx([1.0, 0.5, 0.0])


def test_the_last_group_counts_without_momentum_and_a_mean_with_it():
    steps = [group(TASKS[0], [0, 1])], [group(TASKS[0], [1, 1]), group(TASKS[1], [0, 1])]
    assert OUTCOME.weights(request(OUTCOME, *steps))[:2] == [0.0, 1.0]
    slow = replace(OUTCOME, momentum=0.5)
    states = request(slow, *steps).history.statistics_of_task(TASKS[0]).states
    assert list(states.values()) == [(0.75, 0.0, 1.0)]  # (1/2 + 1) / 2


def test_tasks_without_groups_have_the_mean_weight():
    groups = SOLVED_BY_HALF[:2]
    assert OUTCOME.weights(request(OUTCOME, groups)) == [0.0, 1.0, 0.5]
    assert OUTCOME.weights(request(OUTCOME)) == [1.0, 1.0, 1.0]


def test_the_floor_is_added_to_every_weight():
    curriculum = replace(OUTCOME, floor=0.1)
    assert curriculum.weights(request(curriculum, SOLVED_BY_HALF)) == [0.1, 1.1, 0.1]


def test_one_request_per_step():
    assert OUTCOME(replace(request(OUTCOME), round_index=1)) == []


def test_interleaved_tasks_end_with_the_rest_of_the_longer_part():
    a, b, c = TASKS
    assert interleave([a], [b, c]) == [a, b, c]
