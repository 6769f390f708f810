"""Reflection: a task that usually fails is prompted again with one of its failed rollouts."""

import asyncio

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.numbers import NumberOrSchedule
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.wrapper import SamplerWrapper

PREFIX_TEXT = "\n\nAn answer that is wrong: "
RETRY_INSTRUCTION = "\n\nThink about what is wrong with it, and answer again."


@component
class WithReflection(SamplerWrapper):
    """Adds rollouts whose prompt shows a failed rollout, for tasks that usually fail.

    A task usually fails if the mean reward of its `replays`, rollouts of earlier steps, is below
    `failure_threshold`. A second inner group is then generated and joined to the first. At the end
    of its prompt are `prefix_text`, a random replay with a reward below the threshold, and
    `retry_instruction`. The reward term `saw_failure` is 1 for the second group, 0 for the first.

    R^3, in-context self-reflection. Jiang et al. (arXiv:2601.19620), section 3.1.

    Args:
        inner: The sampler of both groups.
        failure_threshold: Mean reward below which a task usually fails.
        prefix_text: Text before the failed rollout.
        retry_instruction: Text after the failed rollout.
    """

    failure_threshold: NumberOrSchedule = 0.25
    prefix_text: str = PREFIX_TEXT
    retry_instruction: str = RETRY_INSTRUCTION

    requires = Requires(replay_rules=(BestAndWorst(),))
    provides = Provides(reward_terms=("saw_failure",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rewards = [replay.reward for replay in task.replays]
        failures = [replay for replay in task.replays if replay.reward < self.failure_threshold]
        groups = [self.inner(task, env, actor)]
        if failures and sum(rewards) / len(rewards) < self.failure_threshold:
            failure = actor.rng("shown").choice(failures)
            text = self.prefix_text + failure.text + self.retry_instruction
            retry_task = append_to_prompt(task, text)
            groups.append(self.inner(retry_task, env, actor.fork("reflected")))
        annotated = (
            rollout.with_reward_terms({"saw_failure": float(i)})
            for i, group in enumerate(await asyncio.gather(*groups))
            for rollout in group.rollouts
        )
        return Group(task, tuple(annotated))
