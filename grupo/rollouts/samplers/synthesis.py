"""Tasks that are synthesised from descriptions in the policy's own answers."""

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

DIVERSITY = "diversity"


class TaskSynthesizer(Protocol):
    """Makes a new task with the reference answer of another one: a component.

    It may be asynchronous, such as a call of a server that generates pictures: other groups are
    generated in the meantime.
    """

    def __call__(
        self, task: Task, answer: str, rng: Random, /
    ) -> Task | Awaitable[Task | None] | None:
        """The task that an answer describes; None if the answer has no description."""
        ...


@component
class SynthesizedTasks(SamplerWrapper):
    """Groups on tasks made from descriptions in earlier answers to the same task.

    The earlier answers are the task's `replays`, which the history keeps within bounds and a
    resumed run restores; a task without any is sampled as it is. The reward term `diversity` of a
    rollout is twice the population standard deviation of the rewards of `probes` answers to the
    task that its own description makes, 0 without a description.

    Syn-GRPO, Huang et al. (arXiv:2511.19343): a synthesised sample is as good as the answers to it
    differ.

    Args:
        inner: The sampler of the group.
        synthesize: Makes the tasks.
        probes: Answers for the diversity of each description; 0 leaves the term at 0.
    """

    synthesize: TaskSynthesizer
    probes: NonNegativeInt = 4

    requires = Requires(task_replays=(BestAndWorst(4),))
    provides = Provides(reward_terms=(DIVERSITY,))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        shown = await self._synthesized(task, actor.rng("synthesis"))
        group = await self.inner(shown, env, actor)
        diversities = await asyncio.gather(
            *(
                self._diversity(task, rollout, env, actor.fork("probe", i))
                for i, rollout in enumerate(group.rollouts)
            )
        )
        rollouts = [
            replace(rollout, reward_terms={**rollout.reward_terms, DIVERSITY: value})
            for rollout, value in zip(group.rollouts, diversities, strict=True)
        ]
        return replace(group, rollouts=tuple(rollouts))

    async def _synthesized(self, task: Task, rng: Random) -> Task:
        """The task of a random earlier description, or the task itself."""
        for replay in rng.sample(task.replays, len(task.replays)):
            if made := await self._make(task, replay.text, rng):
                return made
        return task

    async def _make(self, task: Task, answer: str, rng: Random) -> Task | None:
        made = self.synthesize(task, answer, rng)
        return await made if inspect.isawaitable(made) else made

    async def _diversity(self, task: Task, rollout: Rollout, env: Env, actor: Actor) -> float:
        made = await self._make(task, rollout.text, actor.rng("made")) if self.probes else None
        if made is None:
            return 0.0
        probed = replace(made, group_size=self.probes)
        return 2 * pstdev(_rewards(await self.inner(probed, env, actor)))


def _rewards(group: Group) -> Sequence[float]:
    """The rewards of the rollouts that could be scored; [0] if none could."""
    return [rollout.reward for rollout in group.rollouts if not rollout.error] or [0.0]
