"""Rollouts that somebody else worked out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, opening
from grupo.core.types import Group, Rollout, Task


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
        solution = task.columns.get(self.name)
        return [] if solution is None else [str(solution)]


@piece
class Demonstrate:
    """Worked solutions in place of attempts: what `solve(task)` says is recited, for reward 1."""

    solve: Callable[[Task], Sequence[str]]

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        told = [await recited(task, env, act, text, "worked") for text in self.solve(task)]
        return Group(task, tuple(replace(rollout, reward=1.0) for rollout in told))


async def recited(task: Task, env: Env, act: Act, text: str, source: str) -> Rollout:
    """A rollout of one turn in which the policy says `text`; who made it is `source`."""
    start, seen = Rollout(source=source), await opening(task, env)
    return start.then(seen, await act.recite(start, seen, text))
