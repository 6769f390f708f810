"""Rollouts of somebody who knows, beside the policy's own."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.demonstrations import SolutionColumn, demonstration_rollout
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithExpertSolution(SamplerWrapper):
    """The inner sampler's group and the solution in the task's column `column`, recited and judged.

    Its actions are not sampled: `sampled` is 0 there, and their old log-probability is 0. A task
    without that column has no expert.
    """

    column: str = "solution"

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group, told = await asyncio.gather(
            self.inner(task, env, actor), self._expert_rollouts(task, env, actor)
        )
        expert = (await score_group(task, env, told)).rollouts if told else ()
        return replace(group, rollouts=(*group.rollouts, *expert))

    async def _expert_rollouts(self, task: Task, env: Env, actor: Actor) -> Sequence[Rollout]:
        return [
            await demonstration_rollout(task, env, actor, text, "expert")
            for text in SolutionColumn(self.column)(task)
        ]
