"""Rollouts that share a beginning."""

import asyncio

from grupo.piece import piece
from grupo.rollout import Act, Env, Group, Rollout, Task, play, scored


@piece
class Tree:
    """Rollouts that share their first turn: `trunks` of them, each continued `branches` times."""

    trunks: int
    branches: int

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        trunks = await asyncio.gather(
            *(self._trunk(task, env, act.fork(i)) for i in range(self.trunks))
        )
        leaves = (
            play(task, env, act.fork(i, j), trunk)
            for i, trunk in enumerate(trunks)
            for j in range(self.branches)
        )
        return await scored(task, env, await asyncio.gather(*leaves))

    async def _trunk(self, task: Task, env: Env, act: Act) -> Rollout:
        seen = await env.reply(task, Rollout())
        return Rollout() if seen is None else Rollout().then(seen, await act(Rollout(), seen))
