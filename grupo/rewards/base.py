"""The seam between rollouts and what they are worth."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout, Task

# What is said of one rollout: a number; numbers by name, "score" among them; or None, which says
# that the reward does not apply to this task.
Mark = float | None | Mapping[str, Any]


class Reward(Protocol):
    """What each rollout of a group is worth; it sees all of them at once."""

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout], /
    ) -> Sequence[Mark] | Awaitable[Sequence[Mark]]: ...


class EachRollout:
    """A reward that judges every rollout by itself: what goes wrong with one is not the others'."""

    def judge(self, task: Task, rollout: Rollout) -> Mark | Awaitable[Mark]:
        """What one rollout is worth."""
        raise NotImplementedError

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[Mark] | Awaitable[Sequence[Mark]]:
        marks = [self.judge(task, rollout) for rollout in rollouts]
        return _awaited(marks) if any(map(inspect.isawaitable, marks)) else marks  # pyright: ignore


async def _awaited(marks: Sequence[Any]) -> Sequence[Mark]:
    return [await mark if inspect.isawaitable(mark) else mark for mark in marks]


@piece
class EachBy(EachRollout):
    """Every rollout judged by `function(task, rollout)`, a plain function or an async one."""

    function: Callable[[Task, Rollout], Mark | Awaitable[Mark]]

    def judge(self, task: Task, rollout: Rollout) -> Mark | Awaitable[Mark]:
        return self.function(task, rollout)


def answer_of(task: Task) -> str:
    """The right answer as text; a task that has none cannot be judged by it."""
    if task.answer is None:
        raise Refused(f"Task {task.key} has no answer to compare with.")
    return str(task.answer).strip()
