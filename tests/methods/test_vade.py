"""VADE: posterior of a task, its expected value, and the fraction of mixed groups."""

from random import Random

import pytest

from grupo.core.batch import TaskHistory
from grupo.core.types import Group, Rollout, Task
from grupo.methods.vade import vade
from grupo.rollouts.curricula import CurriculumRequest, Thompson, next_tasks, task_gain
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore

STATISTICS = vade().requires.task_statistics
TWO_OF_EIGHT = (1.0, 1.0, *[0.0] * 6)


def test_posterior_counts_of_group_with_two_successes():
    a, b = Thompson(decay_per_step=0.99).decayed_counts(TaskHistory((3,), (TWO_OF_EIGHT,)), step=3)
    assert (a, b) == (2, 6)
    assert (a + 1) / (a + b + 2) == pytest.approx(0.3)  # the mean of Beta(3, 7)


def test_counts_decay_per_group_and_per_step():
    task_history = TaskHistory((3, 5), (TWO_OF_EIGHT, (1.0, 0.0)))
    a, b = Thompson(decay_per_group=0.5, decay_per_step=0.9).decayed_counts(task_history, step=6)
    # two steps on: 2 and 6 times 0.81; halved, and one more of each; another step
    assert (a, b) == pytest.approx((0.9 * (0.5 * 2 * 0.81 + 1), 0.9 * (0.5 * 6 * 0.81 + 1)))
    assert Thompson().decayed_counts(TaskHistory(), step=6) == (0.0, 0.0)


def test_mostly_failing_tasks_have_highest_value():
    assert [task_gain(p) for p in (0.5, 0.9, 0.05)] == pytest.approx(
        [0.125, 0.009, 0.0451], abs=1e-4
    )
    assert task_gain(1 / 3) == pytest.approx(0.1481, abs=1e-4)
    assert max(range(101), key=lambda i: task_gain(i / 100)) == 33


def empty_history(num_tasks_drawn=0):
    return History(num_tasks_drawn, StatisticStore(STATISTICS))


def group(task, rewards):
    return Group(task, tuple(Rollout(reward=r) for r in rewards))


def test_always_and_never_solved_tasks_are_selected_last():
    tasks, history = [Task(str(i), "") for i in range(9)], empty_history()
    for i, task in enumerate(tasks):  # the first three are mixed, three are solved, three hopeless
        rewards = [1.0] * 20 + [0.0] * 40 if i < 3 else [float(i < 6)] * 60
        history.append_groups(0, [group(task, rewards)])
    tasks_selected = Thompson()(CurriculumRequest(tasks, history, 3, seed=0))
    assert {task.key for task in tasks_selected} == {"0", "1", "2"}


def test_selection_is_unique_within_step_and_deterministic():
    tasks = [Task(str(i), "") for i in range(40)]
    curriculum_request = CurriculumRequest(tasks, empty_history(num_tasks_drawn=5), 8, seed=0)
    keys = [task.key for task in Thompson(pool_factor=2)(curriculum_request)]
    assert len(set(keys)) == 8
    assert keys == [task.key for task in Thompson(pool_factor=2)(curriculum_request)]
    assert keys != [
        t.key
        for t in Thompson(pool_factor=2)(
            CurriculumRequest(tasks, empty_history(num_tasks_drawn=13), 8, seed=0)
        )
    ]
    assert Thompson()(CurriculumRequest(tasks, empty_history(), 8, seed=0, round_index=1)) == []


def mixed_fraction(curriculum, seed=0, steps=50, count=64):
    """The final fraction of mixed groups; 800 of the 1,000 tasks have constant rewards."""
    rng, history = Random(seed), empty_history()
    rates = [float(rng.random() < 0.5) if i < 800 else rng.uniform(0.2, 0.8) for i in range(1000)]
    tasks, shares = [Task(str(i), "") for i in range(1000)], []
    for step in range(steps):
        tasks_selected = curriculum(CurriculumRequest(tasks, history, count, seed))
        groups = [
            group(t, [float(rng.random() < rates[int(t.key)]) for _ in "12345678"])
            for t in tasks_selected
        ]
        history.count_drawn_tasks(len(tasks_selected))
        history.append_groups(step, groups)
        shares.append(sum(g.has_reward_variance for g in groups) / count)
    return sum(shares[-5:]) / 5


@pytest.mark.slow
def test_selection_increases_fraction_of_mixed_groups():
    assert mixed_fraction(vade().curriculum) > 0.8
    assert mixed_fraction(next_tasks) < 0.25
