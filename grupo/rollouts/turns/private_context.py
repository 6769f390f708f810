"""Private contexts: a strategy's own prompts, and an answer that takes the place of another one."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from grupo.core.interfaces import Actor, TurnStrategy
from grupo.core.message_content import content_text
from grupo.core.private_turns import add_private_turn
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage


@runtime_checkable
class ReadsThoughts(Protocol):
    """A turn strategy whose prompts contain what the policy has written before."""

    @property
    def private_tokens(self) -> int:
        """Largest number of generated tokens in one prompt."""
        ...


async def private_reply(
    actor: Actor, rollout: Rollout, prompt: Observation, *, role: str = "", label: str
) -> str:
    """The text that a role replies to a prompt, which takes the place of the next observation.

    The usage `replies/empty` counts replies without a token: the prompt fills the context.

    Args:
        actor: Generates the reply.
        rollout: The rollout before the turn, whose context the prompt continues.
        prompt: The prompt.
        role: The role that replies; "" for the policy itself.
        label: Name of the reply among the private turns.
    """
    response = await actor(replace(rollout, role=role or rollout.role), prompt)
    add_private_turn(label, response.text)
    if not response.items:
        add_external_usage({"replies/empty": 1.0})
    return response.text


async def answer_to_prompt(
    actor: Actor,
    rollout: Rollout,
    observation: Observation,
    prompt: Observation,
    inner: TurnStrategy,
) -> Rollout:
    """The answer to another prompt as the answer to the observation, marked as `off_context`.

    Args:
        actor: Generates the answer.
        rollout: The rollout before the turn.
        observation: The observation that the answer belongs to.
        prompt: The prompt that the policy reads in its place.
        inner: Generates the answer.
    """
    answer = await inner(actor, rollout, prompt)
    encoded = await actor.prefill_forced(rollout, observation, "")
    return as_answer(rollout, rollout.append_turn(observation, encoded), answer)


async def answer_in_new_context(
    actor: Actor,
    rollout: Rollout,
    observation: Observation,
    prompt: Observation,
    inner: TurnStrategy,
) -> Rollout:
    """The answer to a prompt without the earlier turns, as the answer to the observation.

    The answer is a sample in the context that it was generated in, which begins with its prompt. A
    trained rollout therefore has a row for each such turn.

    Args:
        actor: Generates the answer.
        rollout: The rollout before the turn.
        observation: The observation that the answer belongs to.
        prompt: The prompt that the policy reads in its place.
        inner: Generates the answer.
    """
    answered = await inner(actor, replace(rollout, turns=()), prompt)
    (_, first), *rest = answered.turns
    resets = bool(rollout.turns)  # the first turn has no context that could be reset
    turns = ((observation, replace(first, resets_context=resets)), *rest)
    return replace(answered, turns=(*rollout.turns, *turns))


def as_answer(before: Rollout, first: Rollout, revision: Rollout) -> Rollout:
    """The revision as the answer to the observation that `first` answers.

    Args:
        before: The rollout before the turn.
        first: The rollout after the first answer.
        revision: The rollout after a revision, which has another observation.
    """
    start = len(before.turns)
    observation, answered = first.turns[start]
    (_, response), *rest = revision.turns[start:]
    context = {
        "observation": answered.observation,
        "resets_context": answered.resets_context,
        "rewrites_history": answered.rewrites_history,
    }
    turns = ((observation, replace(response, **context)), *rest)
    new = ((o, replace(response, off_context=True, routes="")) for o, response in turns)
    return replace(first, turns=(*before.turns, *new))


def task_text(observation: Observation) -> str:
    """The text of an observation; of a chat, that of the user's last message."""
    if isinstance(observation, str):
        return observation
    return content_text(observation[_last_user(observation)].get("content"))


def with_task_text(observation: Observation, text: str) -> Observation:
    """The observation with another text; of a chat, in the user's last message, which ends it.

    Images and other media of the message stay before the text.
    """
    if isinstance(observation, str):
        return text
    index = _last_user(observation)
    content = observation[index].get("content")
    parts = content if isinstance(content, list | tuple) else ()
    media = [part for part in parts if isinstance(part, dict) and part.get("type") != "text"]
    new = [*media, {"type": "text", "text": text}] if media else text
    return (*observation[:index], {**observation[index], "content": new})


def _last_user(observation: Observation) -> int:
    """Index of the user's last message; the last message if there is none of the user."""
    roles = [message.get("role") for message in observation if not isinstance(message, str)]
    return max((i for i, role in enumerate(roles) if role == "user"), default=len(roles) - 1)
