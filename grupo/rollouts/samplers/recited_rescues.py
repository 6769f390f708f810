"""Copies correct rollouts that a changed prompt led to, such as one with a hint."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.numbers import NumberOrSchedule
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.trained_prompts import recited
from grupo.rollouts.samplers.wrapper import SamplerWrapper

RECITED = "recited"  # `Rollout.source` of a copy


@component
class WithRecitedRescues(SamplerWrapper):
    """For each correct rollout from `sources`, adds a copy that answers the task's own prompt.

    The inner sampler, a `Rescue`, generates rollouts with a hint for a task that no rollout solves.
    The text of a copy is forced after the task's own prompt. A copy keeps the reward, has the
    source "recited", and is marked as not sampled.

    Args:
        inner: The sampler of the group, a `Rescue`.
        sources: Values of `Rollout.source` whose rollouts are copied.
        success_threshold: A rollout with a higher reward is correct.
    """

    sources: tuple[str, ...]
    success_threshold: NumberOrSchedule = 0.5

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        copies = [
            replace(await recited(rollout, task, env, actor), source=RECITED)
            for rollout in group.rollouts
            if rollout.source in self.sources and rollout.reward > self.success_threshold
        ]
        return group.with_rollouts((*group.rollouts, *copies))
