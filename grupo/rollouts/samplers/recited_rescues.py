"""Correct answers that were found with help, recited behind the plain prompt as well."""

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
    """Adds a copy of every correct rollout of some attempts, recited behind the plain prompt.

    Copies are not sampled, keep their rewards, and have the source "recited".

    Args:
        inner: The sampler, a `Rescue`.
        sources: Sources of the attempts whose rollouts are copied.
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
        return replace(group, rollouts=(*group.rollouts, *copies))
