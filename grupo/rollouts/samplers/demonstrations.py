"""Demonstrations: rollouts whose text is given instead of generated."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task


@component
class SolutionColumn:
    """Reads the worked solution of a task from a column; no solution where the column is absent.

    Args:
        name: The column.

    >>> SolutionColumn()(Task("sum", "1 + 1 =", columns={"solution": "2"}))
    ['2']
    """

    name: str = "solution"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.name,))

    def __call__(self, task: Task) -> Sequence[str]:
        solution = task.columns.get(self.name)
        return [] if solution is None else [str(solution)]


@component
class DemonstrationSampler:
    """A group of worked solutions, each with reward 1; the policy generates nothing.

    Args:
        solve: Texts of the solutions of a task.
    """

    solve: Callable[[Task], Sequence[str]]

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = [
            await demonstration_rollout(task, env, actor, text, "demonstration")
            for text in self.solve(task)
        ]
        return Group(task, tuple(replace(rollout, reward=1.0) for rollout in rollouts))


async def demonstration_rollout(
    task: Task, env: Env, actor: Actor, text: str, source: str
) -> Rollout:
    """A rollout of one turn whose action is `text`, recorded as made by `source`."""
    rollout = Rollout(source=source)
    observation = await initial_observation(task, env)
    action = await actor.append_unsampled(rollout, observation, text)
    return rollout.append_turn(observation, action)
