"""Second attempts at a task, generated with a critique of the first attempt in the prompt."""

from collections.abc import Callable

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.base import Sampler
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.merge_rules import best_replaces_first
from grupo.rollouts.samplers.rescue import (
    GenerationPrompt,
    Rescue,
    RescueAttempt,
    RescuePrompts,
    every_group,
)
from grupo.rollouts.samplers.trained_prompts import plain_prompt

RETRY_INSTRUCTION = "Answer again."
SUCCESS_THRESHOLD = 0.5  # a rollout with a higher reward is correct


def critique_with_answer(task: Task, rollout: Rollout) -> str:
    """A critique that needs no critic model: correctness and the reference answer.

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
class Critiques:
    """Builds a prompt for a second attempt from each scored rollout and a critique of the rollout.

    The prompt ends with the first answer, the critique and `retry_instruction`.

    Args:
        critique: Returns the text of a critique, from the task and the rollout.
        retry_instruction: Text at the end of the prompt.
    """

    critique: Callable[[Task, Rollout], str] = critique_with_answer
    retry_instruction: str = RETRY_INSTRUCTION

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        return RescuePrompts(
            tuple(
                GenerationPrompt(self._retry_task(group.task, rollout), (("refined", i),))
                for i, rollout in enumerate(group.rollouts)
                if not rollout.error
            )
        )

    def _retry_task(self, task: Task, first_attempt: Rollout) -> Task:
        paragraphs = (
            f"Your answer: {first_attempt.text}",
            self.critique(task, first_attempt),
            self.retry_instruction,
        )
        return append_to_prompt(task, "\n\n" + "\n\n".join(paragraphs))


def with_critique(
    inner: Sampler,
    critique: Callable[[Task, Rollout], str] = critique_with_answer,
    retry_instruction: str = RETRY_INSTRUCTION,
) -> Rescue:
    """A sampler that replaces a group's first rollout by the best second attempt with a critique.

    The second attempt is trained with the task's own prompt, and its source is "with_critique". Of
    several with the highest reward, the first one is taken. Critique-GRPO, Zhang et al.
    (arXiv:2506.03106).

    Args:
        inner: The sampler of the first attempts.
        critique: Returns the text of a critique, from the task and the rollout.
        retry_instruction: Text at the end of the prompt for the second attempt.
    """
    build_prompts = Critiques(critique, retry_instruction)
    attempt = RescueAttempt(build_prompts, best_replaces_first, plain_prompt, "with_critique")
    return Rescue(inner, (attempt,), every_group)
