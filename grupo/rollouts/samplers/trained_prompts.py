"""The prompt that a rollout is trained under: that of its generation, or the task's prompt."""

from dataclasses import replace
from typing import Protocol

from grupo.core.interfaces import Actor, Env, initial_observation
from grupo.core.types import Rollout, Task, turn_text


class Reprompt(Protocol):
    """Moves a rollout from the prompt of its generation to the prompt under which it is trained."""

    async def __call__(
        self, rollout: Rollout, task: Task, env: Env, actor: Actor, /
    ) -> Rollout: ...


async def keep_generation_prompt(rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
    """The rollout as it was generated: it is trained under the prompt of its generation."""
    return rollout


async def plain_prompt(rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
    """The rollout behind the task's plain prompt, with `off_context` responses.

    The log-probabilities remain those under the prompt of its generation: the ratio is
    pi(o | q) / old(o | q, hint).
    """
    return actor.with_prompt(rollout, await initial_observation(task, env))


async def recited(rollout: Rollout, task: Task, env: Env, actor: Actor) -> Rollout:
    """The rollout's texts behind the task's plain prompt, as those of an unsampled demonstration.

    Its old log-probabilities are 0.
    """
    copy = replace(rollout, turns=(), step_values={})
    prompt = await initial_observation(task, env)
    for number, (observation, response) in enumerate(rollout.turns):
        shown = observation if number else prompt
        text = turn_text(observation, response)
        copy = copy.append_turn(shown, await actor.append_unsampled(copy, shown, text))
    return copy
