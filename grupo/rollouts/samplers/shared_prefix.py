"""Rollouts that share a beginning."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, play, scored
from grupo.core.types import Group, Rollout, Task


@piece
class Tree:
    """Rollouts that share their first turn: `trunks` of them, each continued `branches` times.

    The part `trunk` says which they share: 0, 1, 2 ...
    """

    trunks: int
    branches: int
    gives = ("trunk",)

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.trunks * self.branches

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        count = -(-task.attempts // self.branches) or self.trunks
        trunks = await asyncio.gather(*(self._trunk(task, env, act.fork(i)) for i in range(count)))
        leaves = (
            play(task, env, act.fork(i, j), trunk)
            for i, trunk in enumerate(trunks)
            for j in range(self.branches)
        )
        group = await scored(task, env, await asyncio.gather(*leaves))
        told = (
            replace(leaf, parts={**leaf.parts, "trunk": float(k // self.branches)})
            for k, leaf in enumerate(group.rollouts)
        )
        return replace(group, rollouts=tuple(told))

    async def _trunk(self, task: Task, env: Env, act: Act) -> Rollout:
        seen = await env.reply(task, Rollout())
        return Rollout() if seen is None else Rollout().then(seen, await act(Rollout(), seen))
