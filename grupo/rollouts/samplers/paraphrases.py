"""The same question in other words."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.types import Group, Task


@component
class ParaphraseSampler:
    """`each` rollouts of every prompt in the task's column `column`, in one group.

    PS-GRPO, Hamman et al. (arXiv:2510.04392).
    """

    rollouts_per_prompt: int = 4
    column: str = "paraphrases"

    @property
    def required_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        asked = [replace(task, prompt=prompt) for prompt in task.columns[self.column]]
        plays = [
            run_rollout(t, env, actor.fork(i, k))
            for i, t in enumerate(asked)
            for k in range(self.rollouts_per_prompt)
        ]
        return await score_group(task, env, await asyncio.gather(*plays))
