"""Sampling again."""

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.base import Sampler


@component
class ResampleUntilInformative:
    """Sample a task again, at most `tries` times in all, while its rollouts earn the same."""

    inner: Sampler
    max_tries: int

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        for again in range(1, self.max_tries):
            if group.has_reward_variance:
                break
            group = await self.inner(task, env, actor.fork("again", again))
        return group
