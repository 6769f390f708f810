"""VADE: what is known of a task, what it promises, and whether promises are kept."""

from random import Random

import pytest

from grupo.core.batch import Past
from grupo.core.types import Group, Rollout, Task
from grupo.methods.vade import vade
from grupo.rollouts.curricula import Ask, Thompson, promised, upcoming
from grupo.rollouts.history import History

TWO_OF_EIGHT = (1.0, 1.0, *[0.0] * 6)


def test_a_group_of_eight_with_two_right():
    a, b = Thompson(fade=0.99).counted(Past((3,), (TWO_OF_EIGHT,)), step=3)
    assert (a, b) == (2, 6)
    assert (a + 1) / (a + b + 2) == pytest.approx(0.3)  # the mean of Beta(3, 7)


def test_groups_and_steps_make_it_forget():
    past = Past((3, 5), (TWO_OF_EIGHT, (1.0, 0.0)))
    a, b = Thompson(forget=0.5, fade=0.9).counted(past, step=6)
    # two steps on: 2 and 6 times 0.81; halved, and one more of each; another step
    assert (a, b) == pytest.approx((0.9 * (0.5 * 2 * 0.81 + 1), 0.9 * (0.5 * 6 * 0.81 + 1)))
    assert Thompson().counted(Past(), step=6) == (0.0, 0.0)


def test_what_mostly_fails_promises_most():
    assert [promised(p) for p in (0.5, 0.9, 0.05)] == pytest.approx(
        [0.125, 0.009, 0.0451], abs=1e-4
    )
    assert promised(1 / 3) == pytest.approx(0.1481, abs=1e-4)
    assert max(range(101), key=lambda i: promised(i / 100)) == 33


def group(task, rewards):
    return Group(task, tuple(Rollout(reward=r) for r in rewards))


def test_tasks_that_always_or_never_succeed_come_last():
    tasks, history = [Task(str(i), "") for i in range(9)], History()
    for i, task in enumerate(tasks):  # the first three are mixed, three are solved, three hopeless
        rewards = [1.0] * 20 + [0.0] * 40 if i < 3 else [float(i < 6)] * 60
        history.record(0, [group(task, rewards)])
    asked = Thompson()(Ask(tasks, history, 3, seed=0))
    assert {task.key for task in asked} == {"0", "1", "2"}


def test_it_answers_once_a_step_with_no_task_twice_and_the_same_each_time():
    tasks = [Task(str(i), "") for i in range(40)]
    ask = Ask(tasks, History(asked=5), 8, seed=0)
    keys = [task.key for task in Thompson(pool=2)(ask)]
    assert len(set(keys)) == 8
    assert keys == [task.key for task in Thompson(pool=2)(ask)]
    assert keys != [t.key for t in Thompson(pool=2)(Ask(tasks, History(asked=13), 8, seed=0))]
    assert Thompson()(Ask(tasks, History(), 8, seed=0, round=1)) == []


def mixed(curriculum, seed=0, steps=50, wanted=64):
    """The share of mixed groups at the end; of 1,000 tasks 800 never vary."""
    rng, history = Random(seed), History()
    rates = [float(rng.random() < 0.5) if i < 800 else rng.uniform(0.2, 0.8) for i in range(1000)]
    tasks, shares = [Task(str(i), "") for i in range(1000)], []
    for step in range(steps):
        asked = curriculum(Ask(tasks, history, wanted, seed))
        groups = [
            group(t, [float(rng.random() < rates[int(t.key)]) for _ in "12345678"]) for t in asked
        ]
        history.ask(len(asked))
        history.record(step, groups)
        shares.append(sum(one.informative for one in groups) / wanted)
    return sum(shares[-5:]) / 5


def test_four_in_five_groups_are_mixed_where_one_in_five_tasks_is():
    assert mixed(vade().curriculum) > 0.8
    assert mixed(upcoming) < 0.25


def test_the_defaults():
    assert vade() == vade(group=8, forget=0.9, fade=0.999, candidates=16)
