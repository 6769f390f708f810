"""Second attempts that were generated with a critique of the first."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt, rollout_with_hidden_hint
from grupo.rollouts.samplers.wrapper import SamplerWrapper

SUCCESS_THRESHOLD = 0.5  # a rollout with a higher reward is correct


def critique_with_answer(task: Task, rollout: Rollout) -> str:
    """Correctness and the reference answer: a critique that needs no critic model.

    >>> critique_with_answer(Task("k", "1 + 1 =", 2), Rollout(reward=0.0))
    'This is wrong. The right answer is 2.'
    """
    return f"{correctness_sentence(task, rollout)} The right answer is {task.reference_answer}."


def correctness_sentence(task: Task, rollout: Rollout) -> str:
    """A sentence that says whether the rollout is correct.

    >>> correctness_sentence(Task("k", "1 + 1 =", 2), Rollout(reward=1.0))
    'This is right.'
    """
    return "This is right." if rollout.reward > SUCCESS_THRESHOLD else "This is wrong."


@component
class WithCritique(SamplerWrapper):
    """Replaces the group's first rollout by the best second attempt made with a critique.

    For each rollout the policy answers again, prompted with its first answer, the critique and
    `retry_instruction`. The best second attempt, the first of equals, is moved behind the task's
    plain prompt; its source is "with_critique".

    Critique-GRPO, Zhang et al. (arXiv:2506.03106).

    Args:
        inner: The sampler of the first attempts.
        critique: Text that criticises a rollout, from the task and the rollout.
        retry_instruction: Text at the end of the second prompt.
    """

    critique: Callable[[Task, Rollout], str] = critique_with_answer
    retry_instruction: str = "Answer again."

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        retries = [
            self._retry(task, rollout, env, actor.fork("refined", i))
            for i, rollout in enumerate(group.rollouts)
            if not rollout.error
        ]
        if not retries:
            return group
        scored = await score_group(task, env, await asyncio.gather(*retries))
        candidates = [rollout for rollout in scored.rollouts if not rollout.error]
        best = sorted(candidates, key=lambda rollout: -rollout.reward)[:1]
        return replace(group, rollouts=(*best, *group.rollouts[len(best) :]))

    async def _retry(self, task: Task, first_attempt: Rollout, env: Env, actor: Actor) -> Rollout:
        paragraphs = (
            f"Your answer: {first_attempt.text}",
            self.critique(task, first_attempt),
            self.retry_instruction,
        )
        retry_task = append_to_prompt(task, "\n\n" + "\n\n".join(paragraphs))
        rollout = await rollout_with_hidden_hint(task, retry_task, env, actor)
        return replace(rollout, source="with_critique")
