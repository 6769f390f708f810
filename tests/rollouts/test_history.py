import math
import tracemalloc

import torch

from grupo.core.batch import Past
from grupo.core.types import Action, Group, Rollout, Task
from grupo.rollouts.history import History
from grupo.rollouts.task_history import Pasts
from grupo.storage import strict_json
from grupo.storage.append_log import Log

SUM, RIDDLE = Task("sum", "1 + 1 ="), Task("riddle", "What am I?")


def group(task: Task, *rewards: float) -> Group:
    """NaN is the reward of a rollout that could not be judged."""
    rollouts = (Rollout(reward=r, failed="it hung" * math.isnan(r)) for r in rewards)
    return Group(task, tuple(rollouts))


def again(history: History) -> History:
    """What comes back of what was written down."""
    text = strict_json.exact_text(history.to_data())
    return History.from_data(strict_json.read_exact(text), history.tensors())


def test_a_task_remembers_its_groups_oldest_first():
    history = History()
    history.record(3, [group(SUM, 1.0, 0.0), group(RIDDLE, 0.5)])
    history.record(7, [group(SUM, 1.0, 1.0, 0.25)])
    assert history.of(SUM) == Past((3, 7), ((1.0, 0.0), (1.0, 1.0, 0.25)))
    assert history.of(SUM).means == (0.5, 0.75)
    assert history.of(RIDDLE) == Past((3,), ((0.5,),))
    assert history.of(Task("new", "")) == Past()


def test_a_task_sampled_twice_in_a_step_remembers_both_groups():
    history = History()
    history.record(0, [group(SUM, 1.0), group(SUM, 0.0)])
    assert history.of(SUM) == Past((0, 0), ((1.0,), (0.0,)))


def test_what_could_not_be_judged_is_not_remembered():
    nan, history = math.nan, History()
    history.record(0, [group(SUM, 1.0, nan, 0.5), group(RIDDLE, nan, nan), Group(RIDDLE, ())])
    assert history.tasks == {"sum": Past((0,), ((1.0, 0.5),))}


def test_a_history_written_down_comes_back_equal_in_the_same_order():
    history = History()
    history.ask(5)
    history.ask(2)
    history.record(0, [group(RIDDLE, 0.1, 1 / 3), group(SUM, -2.5)])
    back = again(history)
    assert back == history
    assert back.asked == 7
    assert list(back.tasks) == ["riddle", "sum"]


def test_parts_are_remembered_where_somebody_asks_for_them():
    told = Group(SUM, (Rollout(reward=1.0, parts={"tools": 2.0}), Rollout(reward=0.0)))
    history = History()
    history.record(0, [told], ["tools"])
    history.record(1, [told])  # nobody asked
    history.record(2, [told], ["tools"])
    assert history.of(SUM).parts == {"tools": ((2.0, 0.0), (2.0, 0.0))}


def test_what_was_measured_comes_back_too():
    history = History()
    history.record(0, [group(SUM, 1.0)], ["tools"])
    for kl in (0.1, 1 / 3):
        history.measure({"kl/ref": kl})
    back = again(history)
    assert back == history
    assert back.measured == {"kl/ref": [0.1, 1 / 3]}


def earning(*rewards: float) -> list[Group]:
    """A group of which each rollout is another."""
    rollouts = (Rollout(reward=r, source=f"{i}") for i, r in enumerate(rewards))
    return [Group(SUM, tuple(rollouts))]


def test_the_newest_of_the_best_and_of_the_worst_are_kept_where_somebody_replays():
    history = History()
    history.record(0, earning(1.0, 0.0, 0.5, 1.0))
    assert history.recalled(SUM) is SUM  # nobody replays
    history.record(1, earning(1.0, 0.0, 0.5, 1.0), replays=1)
    assert [(r.reward, r.source) for r in history.recalled(SUM).before] == [(0.0, "1"), (1.0, "3")]
    history.record(2, earning(0.5, 0.0), replays=1)  # the success of before stays
    assert [(r.reward, r.source) for r in history.recalled(SUM).before] == [(1.0, "3"), (0.0, "1")]
    history.record(3, earning(2.0, 2.0), replays=2)
    assert [r.reward for r in history.recalled(SUM).before] == [1.0, 0.0, 2.0, 2.0]


def test_rollouts_of_tasks_that_were_not_asked_for_longest_are_dropped_first(monkeypatch):
    monkeypatch.setattr("grupo.rollouts.history.KEPT", 2)
    history, tasks = History(), [Task(name, "") for name in "abc"]
    for step, task in enumerate([*tasks[:2], tasks[0], tasks[2]]):
        history.record(step, [Group(task, (Rollout(reward=1.0),))], replays=1)
    assert list(history.kept) == ["a", "c"]
    assert set(history.tasks) == {"a", "b", "c"}  # what they earned is remembered


def test_kept_rollouts_come_back_whole():
    history, action = History(), Action((3, 4), (-0.1, -1 / 3), (1, 2), "ab", version=5)
    told = Rollout((("?", action),), 1.0, {"right": 1.0}, {"step": (0.0, 0.5)}, source="guided")
    history.record(4, [Group(SUM, (told,))], replays=2)
    back = again(history)
    assert back == history == history.copy()
    assert (back.steps, back.recalled(SUM).before) == (5, (told,))


def test_what_comes_back_goes_on():
    history = History()
    history.record(0, [group(SUM, 1.0)], ["tools"])
    back = again(history)
    back.record(1, [group(RIDDLE, 0.5), group(SUM, 0.0)])
    assert back.of(SUM) == Past((0, 1), ((1.0,), (0.0,)), {"tools": ((0.0,),)})
    assert history.of(SUM).steps == (0,)


def test_a_copy_stays_as_it_was_while_the_history_goes_on():
    history = History()
    history.record(0, [group(SUM, 1.0), group(SUM, 0.5)])
    copy = history.copy()
    history.record(1, [group(SUM, 0.0), group(RIDDLE, 0.25)])
    assert copy.of(SUM) == Past((0, 0), ((1.0,), (0.5,)))
    assert copy.of(RIDDLE) == Past()
    assert list(copy.tasks) == ["sum"]
    assert (len(copy.tasks), len(history.tasks)) == (1, 2)
    assert history.of(SUM).steps == (0, 0, 1)


def test_what_lies_on_the_disk_is_read_as_what_is_in_memory():
    small, large = History(tasks=Pasts(Log(room=100))), History()
    for step in range(9):
        groups = [group(SUM, 1 / (step + 1), 0.5), group(RIDDLE, *[step / 7] * (step % 3 + 1))]
        copies = [history.copy() for history in (small, large)]
        for history in (small, large):
            history.record(step, groups, ["tools"] if step % 2 else [])
        assert copies[0] == copies[1]
    assert len(small.tasks.log.newest[1]) <= 100 < len(small.tasks.log)
    assert small == large == again(small)
    assert all(map(torch.equal, small.tensors().values(), large.tensors().values()))


def test_a_task_takes_little_memory_and_none_for_each_time_it_comes_again():
    keys = [f"{number:032x}" for number in range(20_000)]
    history = History(tasks=Pasts(Log(room=1 << 16)))

    def come(step: int) -> float:
        """How many bytes a task it takes, now that all have come once more."""
        for key in keys:
            history.record(step, [group(Task(key, ""), *[1 / 3] * 8)])
        return tracemalloc.get_traced_memory()[0] / len(keys)

    tracemalloc.start()
    try:
        first, third = come(0), [come(1), come(2)][1]
    finally:
        tracemalloc.stop()
    assert first < 150
    assert third - first < 15


def test_a_copy_costs_the_same_however_many_tasks_there_are():
    def allocated(tasks: int) -> int:
        history = History()
        history.record(0, (group(Task(f"{i}", ""), 1.0) for i in range(tasks)))
        tracemalloc.start()
        try:
            copy = history.copy()
            assert copy.of(Task("0", "")).rewards == ((1.0,),)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert allocated(5_000) < allocated(5) + 2_000
