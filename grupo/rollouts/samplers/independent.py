"""Independent rollouts: the group sampler of GRPO."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import (
    Actor,
    Env,
    TurnStrategy,
    run_rollout,
    score_group,
    single_response,
)
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Task


@component
class GroupSampler:
    """Generates independent rollouts, each with a random stream of its own.

    Args:
        group_size: Number of rollouts in a group.
        turn_strategy: Generates the response to one observation. Strategies for limits, chunks and
            votes are in `grupo.rollouts.turns`.
    """

    group_size: PositiveInt = 8
    turn_strategy: TurnStrategy = single_response

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        count = task.group_size or self.group_size
        rollouts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork(i), turn_strategy=self.turn_strategy)
                for i in range(count)
            )
        )
        return await score_group(task, env, rollouts)
