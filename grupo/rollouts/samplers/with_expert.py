"""Rollouts of somebody who knows, beside the policy's own."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, scored
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.demonstrations import Column, recited
from grupo.rollouts.samplers.wrapper import Around


@piece
class WithExpert(Around):
    """The inner sampler's group and the solution in the task's column `column`, recited and judged.

    Its actions are not sampled: `sampled` is 0 there, and their old log-probability is 0. A task
    without that column has no expert.
    """

    column: str = "solution"

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group, told = await asyncio.gather(
            self.inner(task, env, act), self._recited(task, env, act)
        )
        expert = (await scored(task, env, told)).rollouts if told else ()
        return replace(group, rollouts=(*group.rollouts, *expert))

    async def _recited(self, task: Task, env: Env, act: Act) -> Sequence[Rollout]:
        return [await recited(task, env, act, text, "expert") for text in Column(self.column)(task)]
