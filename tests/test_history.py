import math

from grupo.batch import Past
from grupo.history import History
from grupo.rollout import Action, Group, Rollout, Task
from grupo.storage import plain

SUM, RIDDLE = Task("sum", "1 + 1 ="), Task("riddle", "What am I?")


def group(task: Task, *rewards: float) -> Group:
    """NaN is the reward of a rollout that could not be judged."""
    rollouts = (Rollout(reward=r, failed="it hung" * math.isnan(r)) for r in rewards)
    return Group(task, tuple(rollouts))


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
    back = History.from_data(plain.read_exact(plain.exact_text(history.to_data())))
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
    again = History.from_data(plain.read_exact(plain.exact_text(history.to_data())))
    assert again == history
    assert again.measured == {"kl/ref": [0.1, 1 / 3]}


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
    monkeypatch.setattr("grupo.history.KEPT", 2)
    history, tasks = History(), [Task(name, "") for name in "abc"]
    for step, task in enumerate([*tasks[:2], tasks[0], tasks[2]]):
        history.record(step, [Group(task, (Rollout(reward=1.0),))], replays=1)
    assert list(history.kept) == ["a", "c"]
    assert set(history.tasks) == {"a", "b", "c"}  # what they earned is remembered


def test_kept_rollouts_come_back_whole():
    history, action = History(), Action((3, 4), (-0.1, -1 / 3), (1, 2), "ab", version=5)
    told = Rollout((("?", action),), 1.0, {"right": 1.0}, {"step": (0.0, 0.5)}, source="guided")
    history.record(4, [Group(SUM, (told,))], replays=2)
    again = History.from_data(plain.read_exact(plain.exact_text(history.to_data())))
    assert again == history == history.copy()
    assert (again.steps, again.recalled(SUM).before) == (5, (told,))
