"""The history of a run: rewards and replays of tasks, metrics, storage and memory."""

import math
import tracemalloc
from dataclasses import replace

import torch

from grupo.core.batch import TaskHistory
from grupo.core.types import Action, Group, Rollout, Seat, Task
from grupo.rollouts.history import History
from grupo.rollouts.task_history import TaskHistoryStore
from grupo.storage import strict_json
from grupo.storage.append_log import AppendLog

SUM, RIDDLE = Task("sum", "1 + 1 ="), Task("riddle", "What am I?")


def group(task: Task, *rewards: float) -> Group:
    """A group with these rewards; NaN is a failed rollout."""
    rollouts = (Rollout(reward=r, error="timeout" * math.isnan(r)) for r in rewards)
    return Group(task, tuple(rollouts))


def restored(history: History) -> History:
    """The history after storage and loading."""
    text = strict_json.to_exact_json(history.to_data())
    return History.from_data(strict_json.from_exact_json(text), history.tensors())


def test_a_task_history_has_its_groups_oldest_first():
    history = History()
    history.append_groups(3, [group(SUM, 1.0, 0.0), group(RIDDLE, 0.5)])
    history.append_groups(7, [group(SUM, 1.0, 1.0, 0.25)])
    assert history.task_history(SUM) == TaskHistory((3, 7), ((1.0, 0.0), (1.0, 1.0, 0.25)))
    assert history.task_history(SUM).mean_rewards == (0.5, 0.75)
    assert history.task_history(RIDDLE) == TaskHistory((3,), ((0.5,),))
    assert history.task_history(Task("new", "")) == TaskHistory()


def test_two_groups_of_a_task_in_one_step_are_both_recorded():
    history = History()
    history.append_groups(0, [group(SUM, 1.0), group(SUM, 0.0)])
    assert history.task_history(SUM) == TaskHistory((0, 0), ((1.0,), (0.0,)))


def test_failed_rollouts_are_not_recorded():
    nan, history = math.nan, History()
    history.append_groups(
        0, [group(SUM, 1.0, nan, 0.5), group(RIDDLE, nan, nan), Group(RIDDLE, ())]
    )
    assert history.task_histories == {"sum": TaskHistory((0,), ((1.0, 0.5),))}


def test_a_restored_history_is_equal_and_has_the_same_order():
    history = History()
    history.count_drawn(5)
    history.count_drawn(2)
    history.append_groups(0, [group(RIDDLE, 0.1, 1 / 3), group(SUM, -2.5)])
    back = restored(history)
    assert back == history
    assert back.tasks_drawn == 7
    assert list(back.task_histories) == ["riddle", "sum"]


def test_reward_terms_are_recorded_where_required():
    group = Group(SUM, (Rollout(reward=1.0, reward_terms={"tools": 2.0}), Rollout(reward=0.0)))
    history = History()
    history.append_groups(0, [group], ["tools"])
    history.append_groups(1, [group])  # not required
    history.append_groups(2, [group], ["tools"])
    assert history.task_history(SUM).reward_terms == {"tools": ((2.0, 0.0), (2.0, 0.0))}


def test_metrics_are_restored():
    history = History()
    history.append_groups(0, [group(SUM, 1.0)], ["tools"])
    for kl in (0.1, 1 / 3):
        history.append_metrics({"policy/kl_ref": kl})
    back = restored(history)
    assert back == history
    assert back.metrics == {"policy/kl_ref": [0.1, 1 / 3]}


def numbered_group(*rewards: float) -> list[Group]:
    """A group whose rollouts have their index as `source`."""
    rollouts = (Rollout(reward=r, source=f"{i}") for i, r in enumerate(rewards))
    return [Group(SUM, tuple(rollouts))]


def test_the_newest_of_the_best_and_of_the_worst_rollouts_are_kept_for_replay():
    history = History()
    history.append_groups(0, numbered_group(1.0, 0.0, 0.5, 1.0))
    assert history.with_replays(SUM) is SUM  # no replays requested
    history.append_groups(1, numbered_group(1.0, 0.0, 0.5, 1.0), num_replays=1)
    assert [(r.reward, r.source) for r in history.with_replays(SUM).replays] == [
        (0.0, "1"),
        (1.0, "3"),
    ]
    history.append_groups(2, numbered_group(0.5, 0.0), num_replays=1)  # the earlier success is kept
    assert [(r.reward, r.source) for r in history.with_replays(SUM).replays] == [
        (1.0, "3"),
        (0.0, "1"),
    ]
    history.append_groups(3, numbered_group(2.0, 2.0), num_replays=2)
    assert [r.reward for r in history.with_replays(SUM).replays] == [1.0, 0.0, 2.0, 2.0]


def test_a_replay_keeps_its_seat_and_loses_its_position_in_the_earlier_step():
    history = History()
    rollout = Rollout(reward=1.0, seat=Seat(game=7, number=1, players=2), index=5)
    history.append_groups(0, [Group(SUM, (rollout,))], num_replays=1)
    stored = History.from_data(history.to_data(), history.tensors())
    (replay,) = stored.with_replays(SUM).replays
    assert replay == replace(rollout, index=-1)


def test_replays_of_the_least_recently_drawn_task_are_dropped_first(monkeypatch):
    monkeypatch.setattr("grupo.rollouts.history.MAX_REPLAY_TASKS", 2)
    history, tasks = History(), [Task(name, "") for name in "abc"]
    for step, task in enumerate([*tasks[:2], tasks[0], tasks[2]]):
        history.append_groups(step, [Group(task, (Rollout(reward=1.0),))], num_replays=1)
    assert list(history.replay_rollouts) == ["a", "c"]
    assert set(history.task_histories) == {"a", "b", "c"}  # their rewards are kept


def test_replay_rollouts_are_restored_completely():
    history, action = History(), Action((3, 4), (-0.1, -1 / 3), (1, 2), "ab", policy_version=5)
    rollout = Rollout(
        (("?", action),), 1.0, {"right": 1.0}, {"index": (0.0, 0.5)}, source="with_hint"
    )
    history.append_groups(4, [Group(SUM, (rollout,))], num_replays=2)
    back = restored(history)
    assert back == history == history.copy()
    assert (back.num_steps, back.with_replays(SUM).replays) == (5, (rollout,))


def test_a_restored_history_can_be_appended_to():
    history = History()
    history.append_groups(0, [group(SUM, 1.0)], ["tools"])
    back = restored(history)
    back.append_groups(1, [group(RIDDLE, 0.5), group(SUM, 0.0)])
    assert back.task_history(SUM) == TaskHistory((0, 1), ((1.0,), (0.0,)), {"tools": ((0.0,),)})
    assert history.task_history(SUM).steps == (0,)


def test_a_copy_does_not_change_when_the_history_is_appended_to():
    history = History()
    history.append_groups(0, [group(SUM, 1.0), group(SUM, 0.5)])
    copy = history.copy()
    history.append_groups(1, [group(SUM, 0.0), group(RIDDLE, 0.25)])
    assert copy.task_history(SUM) == TaskHistory((0, 0), ((1.0,), (0.5,)))
    assert copy.task_history(RIDDLE) == TaskHistory()
    assert list(copy.task_histories) == ["sum"]
    assert (len(copy.task_histories), len(history.task_histories)) == (1, 2)
    assert history.task_history(SUM).steps == (0, 0, 1)


def test_groups_on_disk_equal_groups_in_memory():
    small, large = (
        History(task_histories=TaskHistoryStore(AppendLog(max_memory_bytes=100))),
        History(),
    )
    for step in range(9):
        groups = [group(SUM, 1 / (step + 1), 0.5), group(RIDDLE, *[step / 7] * (step % 3 + 1))]
        copies = [history.copy() for history in (small, large)]
        for history in (small, large):
            history.append_groups(step, groups, ["tools"] if step % 2 else [])
        assert copies[0] == copies[1]
    assert len(small.task_histories.log.tail[1]) <= 100 < len(small.task_histories.log)
    assert small == large == restored(small)
    assert all(map(torch.equal, small.tensors().values(), large.tensors().values()))


def test_a_task_takes_little_memory_and_a_further_group_almost_none():
    keys = [f"{number:032x}" for number in range(20_000)]
    history = History(task_histories=TaskHistoryStore(AppendLog(max_memory_bytes=1 << 16)))

    def append_to_all(step: int) -> float:
        """Bytes per task after a further group of every task."""
        for key in keys:
            history.append_groups(step, [group(Task(key, ""), *[1 / 3] * 8)])
        return tracemalloc.get_traced_memory()[0] / len(keys)

    tracemalloc.start()
    try:
        first, third = append_to_all(0), [append_to_all(1), append_to_all(2)][1]
    finally:
        tracemalloc.stop()
    assert first < 150
    assert third - first < 15


def test_the_memory_of_a_copy_does_not_depend_on_the_number_of_tasks():
    def allocated(tasks: int) -> int:
        history = History()
        history.append_groups(0, (group(Task(f"{i}", ""), 1.0) for i in range(tasks)))
        tracemalloc.start()
        try:
            copy = history.copy()
            assert copy.task_history(Task("0", "")).rewards == ((1.0,),)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert allocated(5_000) < allocated(5) + 2_000
