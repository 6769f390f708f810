"""Explanations of the reference answer by the policy, trained on as answers to the task."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.ranges import PositiveInt
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.rescue import GenerationPrompt, RescuePrompts
from grupo.util.errors import ConfigError

EXPLAIN = "\n\nThe right answer is {answer}. Explain step by step how it is found."


@component
class Explanations:
    """Builds the prompt in which the policy is asked to explain the reference answer.

    Args:
        count: Number of explanations.
        instruction: Text at the end of the prompt, with the field {answer}.
    """

    count: PositiveInt = 1
    instruction: str = EXPLAIN

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a reference answer."""
        for task in tasks:
            if task.reference_answer is None:
                raise ConfigError(
                    f"tasks: {task.key} has no reference answer, which is to be explained."
                )

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        task = group.task
        answer_task = append_to_prompt(task, self.instruction.format(answer=task.reference_answer))
        rng_labels = tuple(("explained", i) for i in range(self.count))
        return RescuePrompts((GenerationPrompt(answer_task, rng_labels),))


@component
class RecitedExplanation:
    """Makes an explanation, followed by `ending`, an unsampled answer to the task's own prompt.

    `ending` is not repeated if the explanation ends with it.

    Args:
        ending: Text at the end of the explanation, with the field {answer}.
    """

    ending: str = "\n\nThe answer is {answer}."

    async def __call__(self, rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
        ending = self.ending.format(answer=task.reference_answer)
        text = rollout.text if rollout.text.endswith(ending) else rollout.text + ending
        empty = replace(rollout, turns=())
        prompt = await initial_observation(task, env)
        return empty.append_turn(prompt, await actor.append_unsampled(empty, prompt, text))
