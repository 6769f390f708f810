"""Paraphrases: rollouts of one task with differently worded prompts."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Task


@component
class ParaphraseSampler:
    """Generates rollouts of every prompt in a column of the task, as one group.

    PS-GRPO, Hamman et al. (arXiv:2510.04392).

    Args:
        rollouts_per_prompt: Number of rollouts of each prompt.
        column: Column with the list of prompts.
    """

    rollouts_per_prompt: PositiveInt = 4
    column: str = "paraphrases"

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rollouts = [
            run_rollout(replace(task, prompt=prompt), env, actor.fork(prompt_index, i))
            for prompt_index, prompt in enumerate(task.columns[self.column])
            for i in range(self.rollouts_per_prompt)
        ]
        return await score_group(task, env, await asyncio.gather(*rollouts))
