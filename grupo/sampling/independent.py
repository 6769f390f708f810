"""Rollouts that know nothing of each other."""

import asyncio

from grupo.piece import piece
from grupo.rollout import Act, Env, Group, Task, play, scored


@piece
class Independent:
    """N rollouts, each with a random stream of its own."""

    n: int = 8

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        attempts = range(task.attempts or self.n)
        return await scored(
            task, env, await asyncio.gather(*(play(task, env, act.fork(i)) for i in attempts))
        )
