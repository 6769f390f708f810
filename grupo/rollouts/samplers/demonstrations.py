"""Demonstrations: rollouts whose texts are columns of a task and not generated."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from grupo.core.component import component
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.tasks.conversations import require_demonstrations, task_demonstration


@component
class SolutionColumn:
    """Reads the worked solution of a task from a column; a task without the column has none.

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
class ConversationColumn:
    """Reads the demonstration of a task from its columns, in the formats of TRL's SFTTrainer.

    Args:
        column: Column of the answer. "" stands for the first of the columns `messages`,
            `completion`, `solution` and `text` that the task has.
        assistant_only: Whether only the assistant's `messages` are trained on, or all tokens.

    >>> ConversationColumn()(Task("sum", "1 + 1 =", columns={"completion": " 2"}))[0].turns
    (('1 + 1 =', ' 2'),)
    """

    column: str = ""
    assistant_only: bool = True

    def __call__(self, task: Task) -> Sequence[Demonstration]:
        demonstration = task_demonstration(task, self.column, assistant_only=self.assistant_only)
        return [] if demonstration is None else [demonstration]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` if a task has no demonstration, or a malformed one."""
        require_demonstrations(tasks, self.column)
        for task in tasks:
            self(task)


class GivenAnswerSampler(Protocol):
    """A sampler that generates nothing: its rollouts are answers in the columns of a task.

    The reward of an answer is above 0 if the policy should imitate it.
    """

    @property
    def solve(self) -> Callable[[Task], Sequence[str | Demonstration]]:
        """The answers of a task, all of which are trained on."""
        ...

    async def __call__(self, task: Task, env: Env, actor: Actor, /) -> Group: ...


@component
class DemonstrationSampler:
    """A group of worked solutions, each with reward 1; the policy generates nothing.

    Args:
        solve: Returns the solutions of a task: texts that answer the environment's first
            observation, or demonstrations with observations of their own.
    """

    solve: Callable[[Task], Sequence[str | Demonstration]]

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = [
            actor.demonstrate(solution)
            if isinstance(solution, Demonstration)
            else await demonstration_rollout(task, env, actor, solution, "demonstration")
            for solution in self.solve(task)
        ]
        return Group(task, tuple(replace(rollout, reward=1.0) for rollout in rollouts))


async def demonstration_rollout(
    task: Task, env: Env, actor: Actor, text: str, source: str
) -> Rollout:
    """A rollout of one turn whose response is `text`, with this `Rollout.source`."""
    rollout = Rollout(source=source)
    observation = await initial_observation(task, env)
    response = await actor.append_unsampled(rollout, observation, text)
    return rollout.append_turn(observation, response)
