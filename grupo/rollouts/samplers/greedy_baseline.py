"""A rollout that takes no chances, for others to be compared with."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithGreedyBaseline(SamplerWrapper):
    """The inner sampler's group, each rollout with the reward of a greedy one as part `greedy`.

    The greedy rollout itself is not learned from. Where it cannot be judged nobody can be compared
    with it: the whole group has failed.
    """

    provides = ("greedy",)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        sure = actor.fork("greedy").with_sampling(top_k=1)
        alone = run_rollout(task, env, sure, turn_strategy=self.inner.turn_strategy)
        group, played = await asyncio.gather(self.inner(task, env, actor), alone)
        (greedy,) = (await score_group(task, env, [played])).rollouts
        return replace(
            group, rollouts=tuple(_with_greedy_reward(greedy, r) for r in group.rollouts)
        )


def _with_greedy_reward(greedy: Rollout, rollout: Rollout) -> Rollout:
    if greedy.error:
        failed = rollout.error or f"the greedy rollout: {greedy.error}"
        return replace(rollout, error=failed)
    return replace(rollout, reward_terms={**rollout.reward_terms, "greedy": greedy.reward})
