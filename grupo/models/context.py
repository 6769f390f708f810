"""The context of a rollout: the items (tokens, latents) before its next response."""

from dataclasses import replace
from typing import Any

from grupo.core.types import Observation, Rollout
from grupo.models.chat_tokenizer import ChatTokenizer


def context_tokens(rollout: Rollout) -> tuple[Any, ...]:
    """All observation tokens and items since the rollout's context was last reset."""
    turns = rollout.contexts[-1].turns
    return tuple(item for _, response in turns for item in (*response.observation, *response.items))


def open_response_tokens(rollout: Rollout) -> tuple[Any, ...]:
    """Items that were generated since the last observation: the beginning of an open answer."""
    turns = enumerate(rollout.turns)
    last = max((i for i, (_, response) in turns if response.observation), default=0)
    return tuple(item for _, response in rollout.turns[last:] for item in response.items)


def replace_prompt(
    chat_tokenizer: ChatTokenizer,
    rollout: Rollout,
    observation: Observation,
    *,
    off_context: bool = False,
) -> Rollout:
    """The rollout with `observation` in place of its prompt.

    `off_context` marks its responses as sampled in another context than they now have.
    """
    (_, first), *rest = rollout.turns
    tokens = chat_tokenizer.encode_observation(Rollout(), observation)
    changed = replace(rollout, turns=((observation, replace(first, observation=tokens)),))
    for later, response in rest:
        if response.rewrites_history:
            whole = chat_tokenizer.encode_whole_chat(changed, later)
            response = replace(response, observation=whole)
        changed = changed.append_turn(later, response)
    turns = ((o, replace(a, off_context=off_context)) for o, a in changed.turns)
    return replace(rollout, turns=tuple(turns))
