"""Sampling again."""

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.base import Sampler


@piece
class UntilInformative:
    """Sample a task again, at most `tries` times in all, while its rollouts earn the same."""

    inner: Sampler
    tries: int

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        group = await self.inner(task, env, act)
        for again in range(1, self.tries):
            if group.informative:
                break
            group = await self.inner(task, env, act.fork("again", again))
        return group
