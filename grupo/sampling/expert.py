"""Rollouts of somebody who knows, beside the policy's own."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.acting import Act, Env, scored
from grupo.piece import piece
from grupo.rollout import Group, Rollout, Task
from grupo.sampling.independent import Independent


@piece
class WithExpert:
    """The inner sampler's group and the solution in the task's column `column`, recited and judged.

    Its actions are not sampled: `sampled` is 0 there, and their old log-probability is 0. A task
    without that column has no expert.
    """

    inner: Independent
    column: str = "solution"

    @property
    def n(self) -> int:
        """How many rollouts the policy makes itself."""
        return self.inner.n

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group, recited = await asyncio.gather(
            self.inner(task, env, act), self._recited(task, env, act)
        )
        expert = (await scored(task, env, recited)).rollouts if recited else ()
        return replace(group, rollouts=(*group.rollouts, *expert))

    async def _recited(self, task: Task, env: Env, act: Act) -> Sequence[Rollout]:
        solution = task.columns.get(self.column)
        if solution is None:
            return ()
        start = Rollout(source="expert")
        seen = await env.reply(task, start)
        assert seen is not None, "a world that says nothing cannot be answered"
        return (start.then(seen, await act.recite(start, seen, str(solution))),)
