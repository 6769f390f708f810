"""Rollouts that share a beginning."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.types import Group, Rollout, Task


@component
class FirstTurnTree:
    """Rollouts that share their first turn: `trunks` of them, each continued `branches` times.

    The part `trunk` says which they share: 0, 1, 2 ...
    """

    first_turns: int
    branches: int
    provides = ("trunk",)

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.first_turns * self.branches

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        count = -(-task.group_size // self.branches) or self.first_turns
        trunks = await asyncio.gather(
            *(self._first_turn(task, env, actor.fork(i)) for i in range(count))
        )
        leaves = (
            run_rollout(task, env, actor.fork(i, j), trunk)
            for i, trunk in enumerate(trunks)
            for j in range(self.branches)
        )
        group = await score_group(task, env, await asyncio.gather(*leaves))
        told = (
            replace(leaf, reward_terms={**leaf.reward_terms, "trunk": float(k // self.branches)})
            for k, leaf in enumerate(group.rollouts)
        )
        return replace(group, rollouts=tuple(told))

    async def _first_turn(self, task: Task, env: Env, actor: Actor) -> Rollout:
        seen = await env.reply(task, Rollout())
        return (
            Rollout() if seen is None else Rollout().append_turn(seen, await actor(Rollout(), seen))
        )
