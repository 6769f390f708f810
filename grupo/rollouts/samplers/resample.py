"""Resampling of groups whose rewards are all equal."""

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.numbers import PositiveInt
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.base import Sampler


@component
class ResampleUntilInformative:
    """Generates the group of a task again as long as all rewards of the group are equal.

    Args:
        inner: The sampler of the groups.
        max_tries: Largest number of groups that are generated, the first included.
    """

    inner: Sampler
    max_tries: PositiveInt

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        for attempt in range(1, self.max_tries):
            if group.has_reward_variance:
                break
            group = await self.inner(task, env, actor.fork("again", attempt))
        return group
