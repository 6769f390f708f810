"""Private contexts: replies to a strategy's own prompts, and answers generated after them."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from grupo.core.interfaces import Actor, TurnStrategy
from grupo.core.message_content import content_text
from grupo.core.private_turns import add_private_turn
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage


@runtime_checkable
class PutsThoughtsInPrompts(Protocol):
    """A turn strategy whose prompts contain texts that the policy generated before."""

    @property
    def thought_tokens_in_prompt(self) -> int:
        """Largest number of generated tokens in one prompt."""
        ...


async def private_reply(
    actor: Actor, rollout: Rollout, prompt: Observation, *, role: str = "", label: str
) -> str:
    """The reply of a role to a prompt; the role reads the prompt in place of the next observation.

    The usage `replies/empty` counts replies without a token. A reply is empty if its prompt fills
    the context.

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
    """Adds the observation to the rollout, with an answer that is generated after `prompt` instead.

    The answer is marked as `off_context`.

    Args:
        actor: Generates the answer.
        rollout: The rollout before the turn.
        observation: The observation that the answer belongs to.
        prompt: The prompt that the policy reads in place of the observation.
        inner: Generates the answer.
    """
    answer = await inner(actor, rollout, prompt)
    # a response without actions, which holds the tokens of the observation
    empty_response = await actor.prefill_forced(rollout, observation, "")
    return replace_answer(rollout, rollout.append_turn(observation, empty_response), answer)


async def answer_in_new_context(
    actor: Actor,
    rollout: Rollout,
    observation: Observation,
    prompt: Observation,
    inner: TurnStrategy,
) -> Rollout:
    """Adds the observation to the rollout, with an answer that is generated after `prompt` alone.

    The policy reads neither the observation nor the earlier turns, which stay in the rollout. The
    response keeps the tokens of `prompt`. Training therefore evaluates the answer in the context in
    which it was sampled, and each such turn is a row of the batch.

    Args:
        actor: Generates the answer.
        rollout: The rollout before the turn.
        observation: The observation that the answer belongs to.
        prompt: The prompt that the policy reads in place of the observation.
        inner: Generates the answer.
    """
    answered = await inner(actor, replace(rollout, turns=()), prompt)
    (_, first), *rest = answered.turns
    resets = bool(rollout.turns)  # the first turn has no context that could be reset
    turns = ((observation, replace(first, resets_context=resets)), *rest)
    return replace(answered, turns=(*rollout.turns, *turns))


def replace_answer(before: Rollout, first: Rollout, revision: Rollout) -> Rollout:
    """The rollout with the answer of `revision` in place of the answer of `first`.

    The answer is marked as `off_context`: it was generated after another prompt than the
    observation that it now answers.

    Args:
        before: The rollout before the turn.
        first: The rollout after an answer to the observation.
        revision: The rollout after an answer to another prompt.
    """
    start = len(before.turns)
    observation, answered = first.turns[start]
    (_, response), *rest = revision.turns[start:]
    context = {  # what came before the answer, which is that of `first`
        "observation": answered.observation,
        "resets_context": answered.resets_context,
        "rewrites_history": answered.rewrites_history,
    }
    turns = ((observation, replace(response, **context)), *rest)
    # experts that routers chose (`routes`) after another prompt are not those after this one
    new = ((o, replace(response, off_context=True, routes="")) for o, response in turns)
    return replace(first, turns=(*before.turns, *new))


def task_text(observation: Observation) -> str:
    """The text of an observation; in a chat, the text of the user's last message."""
    if isinstance(observation, str):
        return observation
    return content_text(observation[_last_user(observation)].get("content"))


def with_task_text(observation: Observation, text: str) -> Observation:
    """The observation with another text.

    In a chat, the text replaces that of the user's last message, and later messages are dropped.
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
    """Index of the user's last message, or of the last message if the user has none."""
    roles = [message.get("role") for message in observation if not isinstance(message, str)]
    return max((i for i, role in enumerate(roles) if role == "user"), default=len(roles) - 1)
