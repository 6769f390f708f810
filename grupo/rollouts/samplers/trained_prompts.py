"""The prompt that a rollout is trained with: the one that it was generated from, or the task's."""

from dataclasses import replace
from typing import Protocol

from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.types import Rollout, Task, turn_text


class TrainingPrompt(Protocol):
    """Returns the rollout with the prompt that it is trained with, in place of its own.

    The prompt from which the rollout was generated is in its first turn. `task` is the group's
    task, whose prompt has no hint or feedback.
    """

    async def __call__(
        self, rollout: Rollout, task: Task, env: Env, actor: Actor, /
    ) -> Rollout: ...


async def keep_generation_prompt(rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
    """The rollout as it was generated: it is trained with the prompt of its generation."""
    return rollout


async def plain_prompt(rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
    """The rollout with the task's own prompt; its responses are marked as `off_context`.

    The old log-probabilities remain those of the generation. The ratio is then
    pi(o | q) / old(o | q, hint).
    """
    return actor.with_prompt(rollout, await initial_observation(task, env))


async def recited(rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
    """A copy of the rollout with the task's own prompt, as an unsampled demonstration.

    Its old log-probabilities are 0.
    """
    copy = replace(rollout, turns=(), step_values={})
    prompt = await initial_observation(task, env)
    for i, (observation, response) in enumerate(rollout.turns):
        new_observation = observation if i else prompt
        text = turn_text(observation, response)
        answer = await actor.append_unsampled(copy, new_observation, text)
        copy = copy.append_turn(new_observation, answer)
    return copy
