"""A task that failed before, asked once more with one of its failures."""

import asyncio
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.wrapper import SamplerWrapper

PREFIX_TEXT = "\n\nAn answer that is wrong: "
RETRY_INSTRUCTION = "\n\nThink about what is wrong with it, and answer again."


@component
class WithReflection(SamplerWrapper):
    """The inner sampler's group, and as many more that saw a wrong answer, where those fail.

    That is where the mean reward of `task.before` is below `below`. One of those that earned less
    is shown, after `lead` and before `ask`. The part `reflection_reward` is 1 for who saw it, 0 for others.

    R^3, in-context self-reflection. Jiang et al. (arXiv:2601.19620), section 3.1.
    """

    failure_threshold: float = 0.25
    prefix_text: str = PREFIX_TEXT
    retry_instruction: str = RETRY_INSTRUCTION
    provides = ("reflected",)

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        rewards = [one.reward for one in task.replays]
        wrong = [one for one in task.replays if one.reward < self.failure_threshold]
        groups = [self.inner(task, env, actor)]
        if wrong and sum(rewards) / len(rewards) < self.failure_threshold:
            shown = actor.rng("shown").choice(wrong)
            again = append_to_prompt(task, self.prefix_text + shown.text + self.retry_instruction)
            groups.append(self.inner(again, env, actor.fork("reflected")))
        found = enumerate(await asyncio.gather(*groups))
        marked = (
            _with_reflected_term(rollout, float(i))
            for i, group in found
            for rollout in group.rollouts
        )
        return Group(task, tuple(marked))


def _with_reflected_term(rollout: Rollout, reflected: float) -> Rollout:
    return replace(rollout, reward_terms={**rollout.reward_terms, "reflected": reflected})
