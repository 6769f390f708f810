"""Adds rollouts at another temperature to a group."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.independent import GroupSampler


@component
class MultiTemperature:
    """Adds rollouts sampled at a multiple of the policy's temperature to the inner group.

    The reward term `temperature_scaled` is 1 for the added rollouts and 0 for the others.

    Args:
        inner: The sampler at the policy's temperature.
        extra_rollouts: Number of added rollouts.
        temperature: Factor on the policy's temperature in added rollouts.
    """

    inner: GroupSampler
    extra_rollouts: PositiveInt
    temperature: Positive

    provides = Provides(reward_terms=("temperature_scaled",))

    @property
    def group_size(self) -> int:
        """Rollouts in a group."""
        return self.inner.group_size + self.extra_rollouts

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        actors = (
            actor.fork("tempered", i).with_sampling(self.temperature)
            for i in range(self.extra_rollouts)
        )
        extra = (
            run_rollout(task, env, scaled_actor, turn_strategy=self.inner.turn_strategy)
            for scaled_actor in actors
        )
        group, rollouts = await asyncio.gather(self.inner(task, env, actor), asyncio.gather(*extra))
        scaled = await score_group(task, env, rollouts)
        return group.with_rollouts(
            rollout.with_reward_terms({"temperature_scaled": is_scaled})
            for is_scaled, of_group in ((0.0, group), (1.0, scaled))
            for rollout in of_group.rollouts
        )
