"""Rollouts that know nothing of each other."""

import asyncio

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, Turn, one_action, play, scored
from grupo.core.types import Group, Task


@piece
class Independent:
    """N rollouts, each with a random stream of its own; how turns are taken is `turn`'s to say."""

    n: int = 8
    turn: Turn = one_action

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        attempts = range(task.attempts or self.n)
        plays = (play(task, env, act.fork(i), turn=self.turn) for i in attempts)
        return await scored(task, env, await asyncio.gather(*plays))
