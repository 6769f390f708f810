"""The interface of rewards, and the base class of those that score rollouts one by one."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from grupo.core.component import component
from grupo.core.types import Response, Rollout, Task
from grupo.util.errors import ConfigError

# The value of one rollout: a number; a mapping with the number as "score" beside further numbers or
# sequences; or None, if the reward does not apply to the rollout.
RewardValue = float | None | Mapping[str, Any]


class AnswerError(RuntimeError):
    """The answer, and not the grader, is the cause of a failure: it makes a grader that works
    exceed a limit of time, memory or recursion, or raise.

    A reward that raises it for a rollout gives the rollout the score of an answer error, which is
    0 unless the reward term states another one.
    """


class Reward(Protocol):
    """Scores all rollouts of a group at once; returns one value for each, in their order.

    An exception in place of a value fails that rollout alone.
    """

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout], /
    ) -> Sequence[RewardValue | Exception] | Awaitable[Sequence[RewardValue | Exception]]: ...


class PerRolloutReward:
    """Base class of rewards that score each rollout by itself; subclasses define `score`.

    Each rollout has a time limit of its own, and an error fails only the rollout that caused it.
    """

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and the largest value that it returns; None if it declares none."""
        return None

    def score(self, task: Task, rollout: Rollout) -> RewardValue | Awaitable[RewardValue]:
        """The value of one rollout, or an awaitable of it."""
        raise NotImplementedError

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue] | Awaitable[Sequence[RewardValue]]:
        values: list[Any] = [self.score(task, rollout) for rollout in rollouts]
        return _await_all(values) if any(map(inspect.isawaitable, values)) else values


class SelfTimedReward:
    """Base class of rewards that limit the time of their own work, such as calls of a judge.

    Subclasses score a group: `await reward(task, rollouts)`. The environment's time limit, which
    could not tell a slow judge from a hanging answer, does not apply to them.
    """

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and the largest value that it returns; None if it declares none."""
        return None

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> "Sequence[RewardValue | Exception]":
        """The value of each rollout; in its place the error of one that cannot be scored."""
        raise NotImplementedError


async def _await_all(values: Sequence[Any]) -> Sequence[RewardValue]:
    return [await value if inspect.isawaitable(value) else value for value in values]


@component
class FunctionReward(PerRolloutReward):
    """Scores each rollout with a function.

    Args:
        function: `function(task, rollout)`, plain or async; returns a number or a mapping.
    """

    function: Callable[[Task, Rollout], RewardValue | Awaitable[RewardValue]]

    def score(self, task: Task, rollout: Rollout) -> RewardValue | Awaitable[RewardValue]:
        return self.function(task, rollout)


def answer_rollout(task: Task, text: str) -> Rollout:
    """A rollout that answers the task's prompt with a text, for a reward to score."""
    return Rollout(((task.prompt, Response((), (), text=text)),))


async def scored_values(
    reward: Reward, task: Task, rollouts: Sequence[Rollout]
) -> Sequence[RewardValue | Exception]:
    """The values of a reward that may return them or an awaitable of them.

    Args:
        reward: Scores the rollouts.
        task: Their task.
        rollouts: The rollouts of a group.
    """
    values = reward(task, rollouts)
    return await values if inspect.isawaitable(values) else values


def reference_text(task: Task) -> str:
    """The task's reference answer as stripped text; raises `ConfigError` if it has none."""
    if task.reference_answer is None:
        raise ConfigError(f"Task {task.key} has no reference answer to compare with.")
    return str(task.reference_answer).strip()
