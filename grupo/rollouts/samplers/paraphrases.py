"""The same question in other words."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, play, scored
from grupo.core.types import Group, Task


@piece
class Paraphrased:
    """`each` rollouts of every prompt in the task's column `column`, in one group.

    PS-GRPO, Hamman et al. (arXiv:2510.04392).
    """

    each: int = 4
    column: str = "paraphrases"

    @property
    def reads_columns(self) -> tuple[str, ...]:
        """The columns of tasks that it reads."""
        return (self.column,)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        asked = [replace(task, prompt=prompt) for prompt in task.columns[self.column]]
        plays = [
            play(t, env, act.fork(i, k)) for i, t in enumerate(asked) for k in range(self.each)
        ]
        return await scored(task, env, await asyncio.gather(*plays))
