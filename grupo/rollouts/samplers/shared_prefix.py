"""Shared first turns: several rollouts continue the same first turn."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task


@component
class FirstTurnTree:
    """Generates `first_turns` first turns and continues each of them `branches` times.

    The reward term `first_turn` is the index of the first turn in the group.

    Args:
        first_turns: Number of first turns in a group.
        branches: Number of rollouts that share a first turn.
    """

    first_turns: PositiveInt
    branches: PositiveInt

    provides = Provides(reward_terms=("first_turn",))

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.first_turns * self.branches

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        num_first_turns = -(-task.group_size // self.branches) or self.first_turns  # rounded up
        first_turns = await asyncio.gather(
            *(self._first_turn(task, env, actor.fork(i)) for i in range(num_first_turns))
        )
        rollouts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork(i, j), first_turn)
                for i, first_turn in enumerate(first_turns)
                for j in range(self.branches)
            )
        )
        group = await score_group(task, env, rollouts)
        return group.with_rollouts(
            rollout.with_reward_terms({"first_turn": float(i // self.branches)})
            for i, rollout in enumerate(group.rollouts)
        )

    async def _first_turn(self, task: Task, env: Env, actor: Actor) -> Rollout:
        observation = await env.reply(task, Rollout())
        if observation is None:
            return Rollout()
        return Rollout().append_turn(observation, await actor(Rollout(), observation))
