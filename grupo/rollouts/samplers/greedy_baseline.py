"""A rollout that takes no chances, for others to be compared with."""

import asyncio
from dataclasses import replace

from grupo.core.component import piece
from grupo.core.interfaces import Act, Env, play, scored
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import Around


@piece
class WithGreedy(Around):
    """The inner sampler's group, each rollout with the reward of a greedy one as part `greedy`.

    The greedy rollout itself is not learned from. Where it cannot be judged nobody can be compared
    with it: the whole group has failed.
    """

    gives = ("greedy",)

    async def __call__(self, task: Task, env: Env, act: Act) -> Group:
        sure = act.fork("greedy").at(top_k=1)
        alone = play(task, env, sure, turn=self.inner.turn)
        group, played = await asyncio.gather(self.inner(task, env, act), alone)
        (greedy,) = (await scored(task, env, [played])).rollouts
        return replace(group, rollouts=tuple(_beside(greedy, r) for r in group.rollouts))


def _beside(greedy: Rollout, rollout: Rollout) -> Rollout:
    if greedy.failed:
        failed = rollout.failed or f"the greedy rollout: {greedy.failed}"
        return replace(rollout, failed=failed)
    return replace(rollout, parts={**rollout.parts, "greedy": greedy.reward})
