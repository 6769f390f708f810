"""Rollouts that somebody else worked out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.types import Group, Rollout, Task


@component
class SolutionColumn:
    """What stands in the task's column `name`, as its one worked solution; none if it is not there.

    >>> SolutionColumn()(Task("sum", "1 + 1 =", columns={"solution": "2"}))
    ['2']
    """

    name: str = "solution"

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.name,)

    def __call__(self, task: Task) -> Sequence[str]:
        solution = task.columns.get(self.name)
        return [] if solution is None else [str(solution)]


@component
class DemonstrationSampler:
    """Worked solutions in place of attempts: what `solve(task)` says is recited, for reward 1."""

    solve: Callable[[Task], Sequence[str]]

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        told = [
            await demonstration_rollout(task, env, actor, text, "worked")
            for text in self.solve(task)
        ]
        return Group(task, tuple(replace(rollout, reward=1.0) for rollout in told))


async def demonstration_rollout(
    task: Task, env: Env, actor: Actor, text: str, source: str
) -> Rollout:
    """A rollout of one turn in which the policy says `text`; who made it is `source`."""
    start, seen = Rollout(source=source), await initial_observation(task, env)
    return start.append_turn(seen, await actor.append_unsampled(start, seen, text))
