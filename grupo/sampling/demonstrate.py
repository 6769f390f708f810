"""Rollouts that somebody else worked out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.acting import Act, Env
from grupo.piece import piece
from grupo.rollout import Group, Rollout, Task


@piece
class Column:
    """What stands in the task's column `name`, as its one worked solution; none if it is not there.

    >>> Column()(Task("sum", "1 + 1 =", columns={"solution": "2"}))
    ['2']
    """

    name: str = "solution"

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.name,)

    def __call__(self, task: Task) -> Sequence[str]:
        return [str(task.columns[self.name])] if self.name in task.columns else []


@piece
class Demonstrate:
    """Worked solutions in place of attempts: what `solve(task)` says is recited, for reward 1."""

    solve: Callable[[Task], Sequence[str]]

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        return Group(
            task, tuple([await self._recite(task, env, act, text) for text in self.solve(task)])
        )

    async def _recite(self, task: Task, env: Env, act: Act, text: str) -> Rollout:
        start = Rollout(source="worked")
        seen = await env.reply(task, start)
        assert seen is not None, "a world that says nothing cannot be answered"
        return replace(start.then(seen, await act.recite(start, seen, text)), reward=1.0)
