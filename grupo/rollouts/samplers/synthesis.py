"""New tasks that are made from descriptions in the policy's own answers."""

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from random import Random
from statistics import pstdev
from typing import Protocol

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.ranges import NonNegativeInt
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper

DIVERSITY = "diversity"  # name of the reward term


class TaskSynthesizer(Protocol):
    """A component that makes a new task with the reference answer of a given task.

    The component may be asynchronous, for example if a server generates pictures. The generation
    of other groups then goes on.
    """

    def __call__(
        self, task: Task, answer: str, rng: Random, /
    ) -> Task | Awaitable[Task | None] | None:
        """The task that an answer describes; None if the answer has no description."""
        ...


@component
class SynthesizedTasks(SamplerWrapper):
    """Samples groups for tasks that are made from descriptions in earlier answers to a task.

    The earlier answers are the task's `replays`. A task without a replay that has a description is
    sampled as it is. The reward term `diversity` of a rollout measures the task that the rollout
    describes. The policy generates `probes` answers to that task. The term is twice the population
    standard deviation of the rewards of these answers, and 0 for a rollout without a description.

    Syn-GRPO, Huang et al. (arXiv:2511.19343): a good task is one whose answers differ.

    Args:
        inner: The sampler of the group.
        synthesize: Makes the tasks.
        probes: Number of answers that measure the diversity; with 0, the term is always 0.
    """

    synthesize: TaskSynthesizer
    probes: NonNegativeInt = 4

    requires = Requires(replay_rules=(BestAndWorst(4),))
    provides = Provides(reward_terms=(DIVERSITY,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        synthesized_task = await self._synthesized(task, actor.rng("synthesis"))
        group = await self.inner(synthesized_task, env, actor)
        diversities = await asyncio.gather(
            *(
                self._diversity(task, rollout, env, actor.fork("probe", i))
                for i, rollout in enumerate(group.rollouts)
            )
        )
        return group.with_rollouts(
            rollout.with_reward_terms({DIVERSITY: value})
            for rollout, value in zip(group.rollouts, diversities, strict=True)
        )

    async def _synthesized(self, task: Task, rng: Random) -> Task:
        """The task that a random earlier answer describes, or the task itself."""
        for replay in rng.sample(task.replays, len(task.replays)):
            if new_task := await self._described_task(task, replay.text, rng):
                return new_task
        return task

    async def _described_task(self, task: Task, answer: str, rng: Random) -> Task | None:
        result = self.synthesize(task, answer, rng)
        return await result if inspect.isawaitable(result) else result

    async def _diversity(self, task: Task, rollout: Rollout, env: Env, actor: Actor) -> float:
        if not self.probes:
            return 0.0
        new_task = await self._described_task(task, rollout.text, actor.rng("made"))
        if new_task is None:
            return 0.0
        probe_task = replace(new_task, group_size=self.probes)
        return 2 * pstdev(_rewards(await self.inner(probe_task, env, actor)))


def _rewards(group: Group) -> Sequence[float]:
    """The rewards of the rollouts that could be scored; [0] if no rollout could be scored."""
    return [rollout.reward for rollout in group.rollouts if not rollout.error] or [0.0]
