"""Histories of a run with two statistics, and groups of two tasks."""

import math

from grupo.core.component import component
from grupo.core.task_statistic import TaskStatistic
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.storage import strict_json

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
