from dataclasses import replace

from grupo.core.types import Task
from grupo.rollouts.curricula import CurriculumRequest, DynamicSampling, ShuffledTasks, next_tasks
from grupo.rollouts.history import History

TASKS = [Task(str(i), "?") for i in range(5)]


def ask(wanted, asked=0, **more):
    return CurriculumRequest(TASKS, History(tasks_drawn=asked), wanted, seed=0, **more)


def test_every_task_comes_once_before_any_comes_again():
    keys = [task.key for task in next_tasks(ask(15))]
    rounds = [keys[:5], keys[5:10], keys[10:]]
    assert all(sorted(r) == ["0", "1", "2", "3", "4"] for r in rounds)
    assert len({tuple(r) for r in rounds}) > 1  # an order of its own each time round


def test_the_sequence_goes_on_where_it_stopped():
    assert [*next_tasks(ask(3)), *next_tasks(ask(4, tasks_drawn=3))] == next_tasks(ask(7))


def test_another_seed_is_another_order():
    assert next_tasks(ask(10)) != next_tasks(replace(ask(10), seed=1))


def test_shuffled_answers_once_a_step():
    assert len(ShuffledTasks()(ask(2))) == 2
    assert ShuffledTasks()(ask(2, round=1)) == []


def test_refilled_answers_so_many_rounds_while_something_is_missing():
    refilled = DynamicSampling(ShuffledTasks(), max_resample_rounds=3)
    answers = [len(refilled(ask(2, round=r))) for r in range(5)]
    assert answers == [2, 2, 2, 0, 0]
    assert refilled(ask(0, round=1)) == []
