"""Adds expert solutions to the policy's own rollouts."""

import asyncio
from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.demonstrations import SolutionColumn, demonstration_rollout
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithExpertSolution(SamplerWrapper):
    """Adds the solution in a column of the task to the group, scored like a rollout.

    Its response is not sampled: the signal `sampled` and the old log-probabilities are 0. A task
    without the column gets no expert rollout.

    Args:
        inner: The sampler of the policy's rollouts.
        column: Column of the solution.
    """

    column: str = "solution"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group, expert_rollouts = await asyncio.gather(
            self.inner(task, env, actor), self._expert_rollouts(task, env, actor)
        )
        if not expert_rollouts:
            return group
        expert_group = await score_group(task, env, expert_rollouts)
        return group.with_rollouts((*group.rollouts, *expert_group.rollouts))

    async def _expert_rollouts(self, task: Task, env: Env, actor: Actor) -> Sequence[Rollout]:
        return [
            await demonstration_rollout(task, env, actor, text, "expert")
            for text in SolutionColumn(self.column)(task)
        ]
