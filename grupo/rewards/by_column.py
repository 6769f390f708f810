"""Rewards that read a column of the task: a reward for each value, as in GURU, or its number."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from grupo.core.component import component, walk
from grupo.core.ranges import FiniteSeconds, NonEmptyString
from grupo.core.task_validator import TaskValidator
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, Reward, SelfTimedReward
from grupo.rewards.reward_function import RewardSource, load_reward
from grupo.util.errors import ConfigError, suggest


@component
class Route:
    """The reward of the tasks that have a value in a column.

    Args:
        value: The value, as text.
        fn: A reward, a plain function in one of the signatures of `as_reward`, or the address of
            either.
        time_limit: Seconds that one call of the reward may take, in place of the environment's
            limit; judges limit their time themselves.
    """

    value: NonEmptyString
    fn: RewardSource
    time_limit: FiniteSeconds = 10.0

    def __post_init__(self) -> None:
        reward = self.reward
        object.__setattr__(self, "fn", self.fn if isinstance(self.fn, str) else reward)

    @cached_property
    def reward(self) -> Reward:
        """The reward that `fn` is or names."""
        return load_reward(self.fn)


@component
class ByColumn:
    """Scores each task by the reward that the value of its column names.

    The value of every rollout is also the reward term `name/value`, which exists only where the
    route applies. A route may have any reward: one that compares the rollouts of a group, a judge,
    or another `ByColumn`.

    GURU, Cheng et al. (arXiv:2506.14965), mixes six domains this way.

    Args:
        column: A column of the tasks, or "source".
        routes: The routes, at least one, with distinct values.

    >>> from grupo.core.types import Response
    >>> from grupo.rewards import ExactMatch, LengthPenalty
    >>> reward = ByColumn("domain", (Route("sums", ExactMatch()), Route("prose", LengthPenalty(9))))
    >>> task = Task("k", "2 + 2 =", "4", columns={"domain": "sums"})
    >>> reward(task, [Rollout((("2 + 2 =", Response((1,), (0.0,), text="4")),))])
    [1.0]
    """

    column: NonEmptyString
    routes: tuple[Route, ...]

    def __post_init__(self) -> None:
        values = [route.value for route in self.routes]
        if not values or len(set(values)) < len(values):
            raise ConfigError(f"routes: of {values}. Allowed: at least one, no value twice.")

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and the largest value of all routes; None if one declares none."""
        ranges = [declared_range(route.reward) for route in self.routes]
        known = [bounds for bounds in ranges if bounds]
        if len(known) < len(ranges):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def route(self, task: Task) -> Route:
        """The route of a task.

        Raises:
            ConfigError: The task has no such column, or a value that no route takes.
        """
        place = task.location or task.key
        columns = {"source": task.source, **task.columns}
        if self.column not in columns:
            raise ConfigError(
                f"tasks: {place} has no column {self.column!r}, which ByColumn reads."
                f" {suggest(self.column, columns)}"
            )
        value = str(columns[self.column])
        by_value = {route.value: route for route in self.routes}
        if value not in by_value:
            raise ConfigError(
                f"tasks: {place} has {value[:80]!r} in the column {self.column!r}, which no reward"
                f" takes. {suggest(value, by_value)}"
            )
        return by_value[value]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a route, or that its route's reward refuses."""
        routed = [(self.route(task), task) for task in tasks]
        for route in self.routes:
            own_tasks = [task for other, task in routed if other is route]
            for validator in task_validators(route.reward):
                validator.validate_tasks(own_tasks)

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Any:
        return self.route(task).reward(task, rollouts)


def declared_range(reward: Callable[..., Any]) -> tuple[float, float] | None:
    """The smallest and the largest value of a reward; None if it declares none."""
    declares = isinstance(reward, PerRolloutReward | SelfTimedReward | ByColumn)
    return reward.reward_range if declares else None


def task_validators(root: object) -> Iterator[TaskValidator]:
    """The validators inside `root`; those of a route see the tasks of the route only."""
    for part in walk(root, leaves=(ByColumn,)):
        if isinstance(part, TaskValidator):
            yield part


def final_route(reward: Callable[..., Any], task: Task) -> tuple[str, Route] | None:
    """The last route of a task, with the values of all its routes joined by "/"; None without one.

    Raises:
        ConfigError: A `ByColumn` has no route for the task.
    """
    if not isinstance(reward, ByColumn):
        return None
    route = reward.route(task)
    inner = final_route(route.reward, task)
    return (f"{route.value}/{inner[0]}", inner[1]) if inner else (route.value, route)


@component
class ColumnNumber(PerRolloutReward):
    """The number in a column of the task, the same for all rollouts: a term of weight 0.

    Methods read it by the term's name, such as the weight of a target in `gui_g1`.

    Args:
        column: Name of the column.

    >>> ColumnNumber("area")(Task("k", "?", columns={"area": 3}), [Rollout()])
    [3.0]
    """

    column: NonEmptyString

    def score(self, task: Task, rollout: Rollout) -> float:
        return self._number(task)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose column has no number."""
        for task in tasks:
            self._number(task)

    def _number(self, task: Task) -> float:
        try:
            return float(task.columns[self.column])
        except (KeyError, TypeError, ValueError):
            value = repr(task.columns.get(self.column))
            raise ConfigError(
                f"tasks: {task.location or task.key}: column {self.column!r} is {value}."
                " Allowed: a number."
            ) from None
