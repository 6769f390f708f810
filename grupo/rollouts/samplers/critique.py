"""Second attempts that saw a critique of the first."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, rollout_with_hidden_hint
from grupo.rollouts.samplers.wrapper import SamplerWrapper

SUCCESS_THRESHOLD = 0.5  # a reward above it is that of a right answer


def critique_with_answer(task: Task, rollout: Rollout) -> str:
    """Right or wrong, and the right answer: the critique that needs no critic.

    >>> critique_with_answer(Task("k", "1 + 1 =", 2), Rollout(reward=0.0))
    'This is wrong. The right answer is 2.'
    """
    return f"{correctness_sentence(task, rollout)} The right answer is {task.reference_answer}."


def correctness_sentence(task: Task, rollout: Rollout) -> str:
    """Right or wrong.

    >>> correctness_sentence(Task("k", "1 + 1 =", 2), Rollout(reward=1.0))
    'This is right.'
    """
    return "This is right." if rollout.reward > SUCCESS_THRESHOLD else "This is wrong."


@component
class WithCritique(SamplerWrapper):
    """The inner sampler's group, its first rollout replaced by the best of its second attempts.

    Each rollout is criticised, and the policy asked again with its answer, `critique(task,
    rollout)` and `ask`. The first of the best is kept, moved behind the plain prompt; its source is
    "refined".

    Critique-GRPO, Zhang et al. (arXiv:2506.03106).
    """

    critique: Callable[[Task, Rollout], str] = critique_with_answer
    retry_instruction: str = "Answer again."

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        again = [
            self._retry(task, one, env, actor.fork("refined", i))
            for i, one in enumerate(group.rollouts)
            if not one.error
        ]
        tried = (
            (await score_group(task, env, await asyncio.gather(*again))).rollouts if again else ()
        )
        best = sorted((one for one in tried if not one.error), key=lambda one: -one.reward)[:1]
        return replace(group, rollouts=(*best, *group.rollouts[len(best) :]))

    async def _retry(self, task: Task, first_attempt: Rollout, env: Env, actor: Actor) -> Rollout:
        said = (
            f"Your answer: {first_attempt.text}",
            self.critique(task, first_attempt),
            self.retry_instruction,
        )
        asked = append_to_prompt(task, "\n\n" + "\n\n".join(said))
        return replace(await rollout_with_hidden_hint(task, asked, env, actor), source="refined")
