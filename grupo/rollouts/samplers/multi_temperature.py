"""Rollouts drawn at another temperature, beside the policy's own."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.independent import GroupSampler


@component
class MultiTemperature:
    """The inner sampler's group and `more` rollouts at `temperature` times the policy's.

    They are told apart by the part `tempered`, 1 for these and 0 for the policy's own.
    """

    inner: GroupSampler
    extra_rollouts: int
    temperature: float
    provides = ("tempered",)

    @property
    def group_size(self) -> int:
        """How many rollouts a group has."""
        return self.inner.group_size + self.extra_rollouts

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        forks = (
            actor.fork("tempered", i).with_sampling(self.temperature)
            for i in range(self.extra_rollouts)
        )
        plays = (
            run_rollout(task, env, fork, turn_strategy=self.inner.turn_strategy) for fork in forks
        )
        group, played = await asyncio.gather(self.inner(task, env, actor), asyncio.gather(*plays))
        tempered = await score_group(task, env, played)
        both = ((0.0, group.rollouts), (1.0, tempered.rollouts))
        told = [
            replace(r, reward_terms={**r.reward_terms, "tempered": x})
            for x, some in both
            for r in some
        ]
        return replace(group, rollouts=tuple(told))
