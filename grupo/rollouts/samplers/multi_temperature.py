"""Rollouts drawn at another temperature, beside the policy's own."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, play, scored
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.independent import Independent


@piece
class WithTempered:
    """The inner sampler's group and `more` rollouts at `temperature` times the policy's.

    They are told apart by the part `tempered`, 1 for these and 0 for the policy's own.
    """

    inner: Independent
    more: int
    temperature: float
    gives = ("tempered",)

    @property
    def n(self) -> int:
        """How many rollouts a group has."""
        return self.inner.n + self.more

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        forks = (act.fork("tempered", i).at(self.temperature) for i in range(self.more))
        plays = (play(task, env, fork, turn=self.inner.turn) for fork in forks)
        group, played = await asyncio.gather(self.inner(task, env, act), asyncio.gather(*plays))
        tempered = await scored(task, env, played)
        both = ((0.0, group.rollouts), (1.0, tempered.rollouts))
        told = [replace(r, parts={**r.parts, "tempered": x}) for x, some in both for r in some]
        return replace(group, rollouts=tuple(told))
