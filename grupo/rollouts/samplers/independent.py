"""Rollouts that know nothing of each other."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, TurnStrategy, run_rollout, score_group, single_action
from grupo.core.types import Group, Task


@component
class GroupSampler:
    """N rollouts, each with a random stream of its own; how turns are taken is `turn`'s to say."""

    group_size: int = 8
    turn_strategy: TurnStrategy = single_action

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        attempts = range(task.group_size or self.group_size)
        plays = (
            run_rollout(task, env, actor.fork(i), turn_strategy=self.turn_strategy)
            for i in attempts
        )
        return await score_group(task, env, await asyncio.gather(*plays))
