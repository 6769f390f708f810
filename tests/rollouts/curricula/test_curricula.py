from dataclasses import replace

from grupo.core.types import Task
from grupo.rollouts.curricula import Ask, Refilled, Shuffled, upcoming
from grupo.rollouts.history import History

TASKS = [Task(str(i), "?") for i in range(5)]


def ask(wanted, asked=0, **more):
    return Ask(TASKS, History(asked=asked), wanted, seed=0, **more)


def test_every_task_comes_once_before_any_comes_again():
    keys = [task.key for task in upcoming(ask(15))]
    rounds = [keys[:5], keys[5:10], keys[10:]]
    assert all(sorted(r) == ["0", "1", "2", "3", "4"] for r in rounds)
    assert len({tuple(r) for r in rounds}) > 1  # an order of its own each time round


def test_the_sequence_goes_on_where_it_stopped():
    assert [*upcoming(ask(3)), *upcoming(ask(4, asked=3))] == upcoming(ask(7))


def test_another_seed_is_another_order():
    assert upcoming(ask(10)) != upcoming(replace(ask(10), seed=1))


def test_shuffled_answers_once_a_step():
    assert len(Shuffled()(ask(2))) == 2
    assert Shuffled()(ask(2, round=1)) == []


def test_refilled_answers_so_many_rounds_while_something_is_missing():
    refilled = Refilled(Shuffled(), rounds=3)
    answers = [len(refilled(ask(2, round=r))) for r in range(5)]
    assert answers == [2, 2, 2, 0, 0]
    assert refilled(ask(0, round=1)) == []
