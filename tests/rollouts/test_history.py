"""The history of a run: statistics and replays of tasks, metrics, storage and memory."""

import math
import tracemalloc
from dataclasses import replace

import pytest

from grupo.core.batch import TaskHistory
from grupo.core.component import component
from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.task_statistic import TaskStatistic
from grupo.core.types import Group, Response, Rollout, Seat, Task
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.storage import strict_json
from grupo.util.errors import ConfigError

SUM, RIDDLE = Task("sum", "1 + 1 ="), Task("riddle", "What am I?")


@component
class Total(TaskStatistic):
    """The sum of a task's rewards times `factor`."""

    factor: float = 1.0

    @property
    def initial_state(self):
        return (0.0,)

    def __call__(self, state, group):
        return (state[0] + self.factor * sum(group.rewards),)


@component
class LastGroup(TaskStatistic):
    """Step, size and sum of the term "tools" of a task's last group."""

    @property
    def initial_state(self):
        return (-1.0, 0.0, 0.0)

    def __call__(self, state, group):
        tools = sum(group.reward_terms.get("tools", ()))
        return (float(group.step), float(len(group.rewards)), float(tools))


STATISTICS = (Total(), LastGroup())


def empty_history(*statistics: TaskStatistic) -> History:
    return History(statistics_by_task=StatisticStore(statistics or STATISTICS))


def states(history: History, task: Task) -> list[tuple[float, ...]]:
    return [history.statistics_of_task(task).state(statistic) for statistic in STATISTICS]


def group(task: Task, *rewards: float) -> Group:
    """A group with these rewards; NaN is a failed rollout."""
    rollouts = (Rollout(reward=r, error="timeout" * math.isnan(r)) for r in rewards)
    return Group(task, tuple(rollouts))


def restored(history: History) -> History:
    """The history after storage and loading."""
    text = strict_json.to_exact_json(history.to_data())
    data = strict_json.from_exact_json(text)
    statistics = history.statistics_by_task.statistics, history.statistics_by_source.statistics
    return History.from_data(data, history.tensors(), *statistics)


def test_each_group_of_a_task_is_folded_into_its_states():
    history = empty_history()
    history.append_groups(3, [group(SUM, 1.0, 0.0), group(RIDDLE, 0.5)])
    history.append_groups(7, [group(SUM, 1.0, 1.0, 0.25)])
    assert states(history, SUM) == [(3.25,), (7.0, 3.0, 0.0)]
    assert states(history, RIDDLE) == [(0.5,), (3.0, 1.0, 0.0)]
    assert states(history, Task("new", "")) == [(0.0,), (-1.0, 0.0, 0.0)]


def test_two_groups_of_a_task_in_one_step_are_both_folded():
    history = empty_history()
    history.append_groups(0, [group(SUM, 1.0), group(SUM, 0.5)])
    assert states(history, SUM) == [(1.5,), (0.0, 1.0, 0.0)]


def test_failed_rollouts_are_left_out():
    nan, history = math.nan, empty_history()
    history.append_groups(
        0, [group(SUM, 1.0, nan, 0.5), group(RIDDLE, nan, nan), Group(RIDDLE, ())]
    )
    assert states(history, SUM) == [(1.5,), (0.0, 2.0, 0.0)]
    assert list(history.statistics_by_task) == ["sum"]


def test_statistics_read_reward_terms_and_absent_ones_are_zero():
    history = empty_history()
    rollouts = (Rollout(reward=1.0, reward_terms={"tools": 2.0}), Rollout(reward=0.0))
    history.append_groups(0, [Group(SUM, rollouts)])
    assert states(history, SUM)[1] == (0.0, 2.0, 2.0)


def test_a_stored_state_equals_the_statistic_over_all_groups():
    history, groups = empty_history(), [(1 / (i + 1), i / 7) for i in range(9)]
    for step, rewards in enumerate(groups):
        history.append_groups(step, [group(SUM, *rewards)])
    listed = TaskHistory(tuple(range(9)), tuple(groups))
    assert states(history, SUM) == [listed.state(statistic) for statistic in STATISTICS]


def test_reading_a_statistic_that_no_component_declares_is_an_error_at_the_first_task():
    history = empty_history(Total())
    assert history.statistics_of_task(SUM).state(Total()) == (0.0,)
    for statistic in (LastGroup(), Total(2.0)):
        with pytest.raises(ConfigError, match="does not declare it: requires = Requires"):
            history.statistics_of_task(SUM).state(statistic)


@component
class Growing(TaskStatistic):
    """A statistic whose state has one more number after each group."""

    @property
    def initial_state(self):
        return (0.0,)

    def __call__(self, state, group):
        return (*state, 0.0)


def test_a_state_of_another_size_is_an_error():
    history = empty_history(Total(), Growing())
    with pytest.raises(ConfigError, match=r"Growing\(\) returned 2 numbers. Allowed: 1, as in"):
        history.append_groups(0, [group(SUM, 1.0)])


def test_without_statistics_nothing_is_stored():
    history = History()
    history.append_groups(0, [group(SUM, 1.0)])
    assert (len(history.statistics_by_task), history.num_steps) == (0, 1)
    assert restored(history) == history


def test_a_restored_history_is_equal_and_has_the_same_order():
    history = empty_history()
    history.count_drawn_tasks(5)
    history.count_drawn_tasks(2)
    history.append_groups(0, [group(RIDDLE, 0.1, 1 / 3), group(SUM, -2.5)])
    back = restored(history)
    assert back == history
    assert back.num_tasks_drawn == 7
    assert list(back.statistics_by_task) == ["riddle", "sum"]


def test_metrics_are_restored():
    history = empty_history()
    history.append_groups(0, [group(SUM, 1.0)])
    for kl in (0.1, 1 / 3):
        history.append_metrics({"policy/kl_ref": kl})
    back = restored(history)
    assert back == history
    assert back.metrics == {"policy/kl_ref": [0.1, 1 / 3]}


def test_groups_of_all_tasks_of_a_source_are_folded_together():
    history = History(statistics_by_source=StatisticStore(STATISTICS))
    sums, riddles = (
        (Task(name, "", source="sums") for name in "ab"),
        Task("c", "", source="riddles"),
    )
    history.append_groups(2, [group(task, 1.0, 0.5) for task in sums])
    history.append_groups(5, [group(riddles, 0.25)])
    back = restored(history)
    assert back == history == history.copy()
    for kept in (history, back):
        assert [kept.statistics_of_source("sums").state(statistic) for statistic in STATISTICS] == [
            (3.0,),
            (2, 2, 0),
        ]
        assert kept.statistics_of_source("riddles").state(Total()) == (0.25,)
        assert kept.statistics_of_source("").state(Total()) == (0.0,)
        assert len(kept.statistics_by_task) == 0


def test_a_copy_of_source_histories_does_not_change():
    history = History(statistics_by_source=StatisticStore((Total(),)))
    copy = history.copy()
    history.append_groups(0, [group(SUM, 1.0)])
    assert copy.statistics_of_source("").state(Total()) == (0.0,)
    assert history.statistics_of_source("").state(Total()) == (1.0,)


def numbered_group(*rewards: float) -> list[Group]:
    """A group whose rollouts have their index as `source`."""
    rollouts = (Rollout(reward=r, source=f"{i}") for i, r in enumerate(rewards))
    return [Group(SUM, tuple(rollouts))]


def test_the_newest_of_the_best_and_of_the_worst_rollouts_are_kept_for_replay():
    history = History()
    history.append_groups(0, numbered_group(1.0, 0.0, 0.5, 1.0))
    assert history.with_replays(SUM) is SUM  # no replays requested
    history.append_groups(1, numbered_group(1.0, 0.0, 0.5, 1.0), replay_rules=[BestAndWorst(1)])
    assert [(r.reward, r.source) for r in history.with_replays(SUM).replays] == [
        (0.0, "1"),
        (1.0, "3"),
    ]
    history.append_groups(
        2, numbered_group(0.5, 0.0), replay_rules=[BestAndWorst(1)]
    )  # the earlier success is kept
    assert [(r.reward, r.source) for r in history.with_replays(SUM).replays] == [
        (1.0, "3"),
        (0.0, "1"),
    ]
    history.append_groups(3, numbered_group(2.0, 2.0), replay_rules=[BestAndWorst(2)])
    assert [r.reward for r in history.with_replays(SUM).replays] == [1.0, 0.0, 2.0, 2.0]


def test_a_replay_keeps_its_seat_and_loses_its_position_in_the_earlier_step():
    history = History()
    rollout = Rollout(reward=1.0, seat=Seat(game=7, number=1, players=2), index=5)
    history.append_groups(0, [Group(SUM, (rollout,))], replay_rules=[BestAndWorst(1)])
    stored = History.from_data(history.to_data(), history.tensors())
    (replay,) = stored.with_replays(SUM).replays
    assert replay == replace(rollout, index=-1)


def test_replays_of_the_least_recently_drawn_task_are_dropped_first(monkeypatch):
    monkeypatch.setattr("grupo.rollouts.history.MAX_REPLAY_TASKS", 2)
    history, tasks = empty_history(), [Task(name, "") for name in "abc"]
    for step, task in enumerate([*tasks[:2], tasks[0], tasks[2]]):
        history.append_groups(
            step, [Group(task, (Rollout(reward=1.0),))], replay_rules=[BestAndWorst(1)]
        )
    assert list(history.replay_rollouts) == ["a", "c"]
    assert set(history.statistics_by_task) == {"a", "b", "c"}  # their rewards are kept


def test_replay_rollouts_are_restored_completely():
    history, response = History(), Response((3, 4), (-0.1, -1 / 3), (1, 2), "ab", policy_version=5)
    rollout = Rollout(
        (("?", response),), 1.0, {"right": 1.0}, {"index": (0.0, 0.5)}, source="with_hint"
    )
    history.append_groups(4, [Group(SUM, (rollout,))], replay_rules=[BestAndWorst(2)])
    back = restored(history)
    assert back == history == history.copy()
    assert (back.num_steps, back.with_replays(SUM).replays) == (5, (rollout,))


def test_a_restored_history_can_be_appended_to():
    history = empty_history()
    history.append_groups(0, [group(SUM, 1.0)])
    back = restored(history)
    back.append_groups(1, [group(RIDDLE, 0.5), group(SUM, 0.25)])
    assert states(back, SUM) == [(1.25,), (1.0, 1.0, 0.0)]
    assert states(history, SUM) == [(1.0,), (0.0, 1.0, 0.0)]


def test_a_copy_does_not_change_when_the_history_is_appended_to():
    history = empty_history()
    history.append_groups(0, [group(SUM, 1.0), group(SUM, 0.5)])
    copy = history.copy()
    history.append_groups(1, [group(SUM, 0.25), group(RIDDLE, 0.25)])
    assert states(copy, SUM) == [(1.5,), (0.0, 1.0, 0.0)]
    assert states(copy, RIDDLE) == [(0.0,), (-1.0, 0.0, 0.0)]
    assert list(copy.statistics_by_task) == ["sum"]
    assert (len(copy.statistics_by_task), len(history.statistics_by_task)) == (1, 2)
    assert states(history, SUM) == [(1.75,), (1.0, 1.0, 0.0)]


@pytest.mark.slow
def test_a_task_takes_100_bytes_and_8_more_per_number_and_a_further_group_none():
    keys = [f"{number:032x}" for number in range(10_000)]

    def bytes_per_task(statistics: tuple[TaskStatistic, ...], visits: int) -> list[float]:
        """Bytes per task after each further group of every task, of size 8."""
        history = empty_history(*statistics)
        sizes = []
        tracemalloc.start()
        try:
            for step in range(visits):
                for key in keys:
                    history.append_groups(step, [group(Task(key, ""), *[1 / 3] * 8)])
                sizes.append(tracemalloc.get_traced_memory()[0] / len(keys))
        finally:
            tracemalloc.stop()
        return sizes

    one, after_two_visits = bytes_per_task((Total(),), 2)
    (four,) = bytes_per_task((Total(), LastGroup()), 1)
    assert one < 100
    assert after_two_visits - one < 1
    assert four - one < 3 * 8 * 1.13  # the array grows by an eighth at a time


def cut(text: str) -> Rollout:
    return Rollout((("?", Response((1,), (-0.1,), text=text)),), 0.0, unfinished=True, index=3)


def test_unfinished_rollouts_are_kept_until_their_task_continues_them():
    history = empty_history()
    done = Rollout(reward=1.0)
    history.append_groups(0, [Group(SUM, (done, cut("a"))), Group(RIDDLE, (cut("b"), cut("c")))])
    kept = history.with_unfinished_rollouts(SUM).unfinished_rollouts
    assert [(r.text, r.index) for r in kept] == [("a", -1)]
    continued = Group(history.with_unfinished_rollouts(RIDDLE), (cut("bb"), done))
    history.append_groups(1, [continued])
    assert [r.text for r in history.with_unfinished_rollouts(RIDDLE).unfinished_rollouts] == ["bb"]
    assert [r.text for r in history.with_unfinished_rollouts(SUM).unfinished_rollouts] == ["a"]


def test_unfinished_rollouts_are_no_scored_ones():
    history = empty_history()
    history.append_groups(0, [Group(SUM, (Rollout(reward=1.0), cut("a"))), Group(SUM, (cut("b"),))])
    assert states(history, SUM)[1] == (0.0, 1.0, 0.0)  # the last scored group had one rollout


def test_unfinished_rollouts_are_taken_once_and_copies_are_independent():
    history = empty_history()
    history.append_groups(0, [Group(SUM, (cut("a"),))])
    snapshot = history.copy()
    taken = snapshot.take_unfinished_rollouts(SUM)
    assert [r.text for r in taken.unfinished_rollouts] == ["a"]
    assert snapshot.take_unfinished_rollouts(taken).unfinished_rollouts == ()
    assert history.with_unfinished_rollouts(SUM).unfinished_rollouts == taken.unfinished_rollouts


def test_unfinished_rollouts_survive_storage_exactly():
    history = empty_history()
    history.append_groups(0, [Group(SUM, (cut("a"), Rollout(reward=1.0)))])
    loaded = restored(history)
    assert loaded.unfinished_rollouts == history.unfinished_rollouts
    assert [*loaded.unfinished_rollouts] == ["sum"]
