"""Greedy baseline: the reward of one more, greedy rollout for each group."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithGreedyBaseline(SamplerWrapper):
    """Adds the reward term `greedy` to every rollout of a group: the reward of a greedy rollout.

    The greedy rollout is not part of the group. If it cannot be scored, all rollouts of the group
    get its error, because they have no baseline.
    """

    provides = Provides(reward_terms=("greedy",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        greedy_actor = actor.fork("greedy").with_sampling(top_k=1)
        group, rollout = await asyncio.gather(
            self.inner(task, env, actor),
            run_rollout(task, env, greedy_actor, turn_strategy=self.turn_strategy),
        )
        (greedy,) = (await score_group(task, env, [rollout])).rollouts
        return group.with_rollouts(_with_greedy_reward(greedy, r) for r in group.rollouts)


def _with_greedy_reward(greedy: Rollout, rollout: Rollout) -> Rollout:
    if greedy.error:
        return replace(rollout, error=rollout.error or f"the greedy rollout: {greedy.error}")
    return rollout.with_reward_terms({"greedy": greedy.reward})
