"""Rewards of queries: their result, that they run, and partial credit for wrong ones."""

import inspect
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.envs.sql.check import Outcome, QueryCheck
from grupo.envs.timeouts import call_all_with_timeout
from grupo.rewards import PerRolloutReward, Reward
from grupo.rewards.base import SelfTimedReward


@component
class SqlExecution(PerRolloutReward):
    """1 if the query of the answer returns the rows of the reference query, else 0.

    Args:
        checker: Finds and runs the query.
    """

    checker: QueryCheck = QueryCheck()

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(self.checker.outcome(task, rollout.text).is_right)


@component
class SqlRuns(PerRolloutReward):
    """1 if the query of the answer returns a result, right or wrong, else 0.

    Args:
        checker: Finds and runs the query.
    """

    checker: QueryCheck = QueryCheck()

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(self.checker.outcome(task, rollout.text).runs)


@component
class UnlessRight(SelfTimedReward):
    """1 for a right query, and the inner reward for a wrong one, which it alone is asked about.

    A right query in other words than the reference thus has all of the partial credit, and no wrong
    query has more.

    Args:
        inner: A reward from 0 to 1, such as `SchemaOverlap()` or a judge.
        checker: Finds and runs the query.
    """

    inner: Reward
    checker: QueryCheck = QueryCheck()

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    async def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
        calls = [partial(self.checker.outcome, task, rollout.text) for rollout in rollouts]
        outcomes = await call_all_with_timeout(calls, math.inf)
        wrong = [
            rollout
            for rollout, outcome in zip(rollouts, outcomes, strict=True)
            if isinstance(outcome, Outcome) and not outcome.is_right
        ]
        values = iter(await self._inner_values(task, wrong))
        return [_value(outcome, values) for outcome in outcomes]

    async def _inner_values(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
        values: Any = self.inner(task, rollouts) if rollouts else ()
        return await values if inspect.isawaitable(values) else values


def _value(outcome: Any, inner_values: Any) -> Any:
    """1 for a right query, the next inner value for a wrong one; a failure is left as it is."""
    if not isinstance(outcome, Outcome):
        return outcome
    return 1.0 if outcome.is_right else _partial_credit(next(inner_values))


def _partial_credit(value: Any) -> Any:
    number = value["score"] if isinstance(value, Mapping) else value
    if isinstance(number, int | float) and not 0 <= number <= 1:
        return ValueError(f"partial credit: {number}. Allowed: 0 to 1.")
    return value
