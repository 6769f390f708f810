"""The history of a run: statistics of tasks, metrics, storage and memory."""

import math
import tracemalloc

import pytest

from grupo.core.batch import TaskHistory
from grupo.core.component import component
from grupo.core.task_statistic import TaskStatistic
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.util.errors import ConfigError
from tests.helpers.histories import (
    RIDDLE,
    STATISTICS,
    SUM,
    LastGroup,
    Total,
    empty_history,
    group,
    restored,
    states,
)


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
