"""Shuffled tasks and dynamic sampling."""

from dataclasses import replace

from grupo.core.types import Rollout, Task
from grupo.rollouts.curricula import (
    CurriculumRequest,
    DynamicSampling,
    ShuffledTasks,
    UnfinishedFirst,
    next_tasks,
)
from grupo.rollouts.history import History

TASKS = [Task(str(i), "?") for i in range(5)]


def request(num_tasks, num_tasks_drawn=0, **fields):
    return CurriculumRequest(
        TASKS, History(num_tasks_drawn=num_tasks_drawn), num_tasks, seed=0, **fields
    )


def test_every_task_is_drawn_once_per_epoch():
    keys = [task.key for task in next_tasks(request(15))]
    epochs = [keys[:5], keys[5:10], keys[10:]]
    assert all(sorted(epoch) == ["0", "1", "2", "3", "4"] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1  # each epoch has an order of its own


def test_the_sequence_continues_after_the_tasks_drawn():
    assert [*next_tasks(request(3)), *next_tasks(request(4, num_tasks_drawn=3))] == next_tasks(
        request(7)
    )


def test_another_seed_gives_another_order():
    assert next_tasks(request(10)) != next_tasks(replace(request(10), seed=1))


def test_shuffled_tasks_serve_one_request_per_step():
    assert len(ShuffledTasks()(request(2))) == 2
    assert ShuffledTasks()(request(2, round_index=1)) == []


def test_dynamic_sampling_serves_a_limited_number_of_rounds_while_tasks_are_needed():
    curriculum = DynamicSampling(ShuffledTasks(), max_resample_rounds=3)
    counts = [len(curriculum(request(2, round_index=r))) for r in range(5)]
    assert counts == [2, 2, 2, 0, 0]
    assert curriculum(request(0, round_index=1)) == []


def test_tasks_with_unfinished_rollouts_come_first_and_are_no_new_ones():
    unfinished = {key: (Rollout(unfinished=True),) * 2 for key in ("3", "1", "4")}
    history = History(num_tasks_drawn=2, unfinished_rollouts=unfinished)
    curriculum = UnfinishedFirst(ShuffledTasks())
    asked = replace(request(5, num_tasks_drawn=2), history=history)
    drawn = curriculum(asked)
    assert [task.key for task in drawn[:3]] == ["3", "1", "4"]  # the longest kept first
    assert [len(task.unfinished_rollouts) for task in drawn] == [2, 2, 2, 0, 0]
    assert drawn[3:] == next_tasks(request(2, num_tasks_drawn=2))
    assert [task.key for task in curriculum(replace(asked, num_tasks=2))] == ["3", "1"]


def test_unfinished_first_draws_from_the_inner_curriculum_alone_without_unfinished_rollouts():
    assert UnfinishedFirst(ShuffledTasks())(request(3)) == next_tasks(request(3))
