"""The seam between rollouts and what they are worth."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Rollout, Task

# What is said of one rollout: a number; numbers by name, "score" among them; or None, which says
# that the reward does not apply to this task.
RewardValue = float | None | Mapping[str, Any]


class Reward(Protocol):
    """What each rollout of a group is worth; it sees all of them at once."""

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout], /
    ) -> Sequence[RewardValue] | Awaitable[Sequence[RewardValue]]: ...


class PerRolloutReward:
    """A reward that judges every rollout by itself: what goes wrong with one is not the others'."""

    def score(self, task: Task, rollout: Rollout) -> RewardValue | Awaitable[RewardValue]:
        """What one rollout is worth."""
        raise NotImplementedError

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue] | Awaitable[Sequence[RewardValue]]:
        marks = [self.score(task, rollout) for rollout in rollouts]
        return _await_all(marks) if any(map(inspect.isawaitable, marks)) else marks  # pyright: ignore


async def _await_all(values: Sequence[Any]) -> Sequence[RewardValue]:
    return [await mark if inspect.isawaitable(mark) else mark for mark in values]


@component
class FunctionReward(PerRolloutReward):
    """Every rollout judged by `function(task, rollout)`, a plain function or an async one."""

    function: Callable[[Task, Rollout], RewardValue | Awaitable[RewardValue]]

    def score(self, task: Task, rollout: Rollout) -> RewardValue | Awaitable[RewardValue]:
        return self.function(task, rollout)


def reference_text(task: Task) -> str:
    """The right answer as text; a task that has none cannot be judged by it."""
    if task.reference_answer is None:
        raise ConfigError(f"Task {task.key} has no answer to compare with.")
    return str(task.reference_answer).strip()
