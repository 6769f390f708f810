"""The items (tokens, latents) that form the context of a rollout's next response."""

from typing import Any

from grupo.core.types import Rollout


def context_tokens(rollout: Rollout) -> tuple[Any, ...]:
    """All observation tokens and items since the rollout's context was last reset."""
    turns = rollout.contexts[-1].turns
    return tuple(item for _, response in turns for item in (*response.observation, *response.items))


def open_response_tokens(rollout: Rollout) -> tuple[Any, ...]:
    """Items that were generated since the last observation: the beginning of an open answer."""
    turns = enumerate(rollout.turns)
    last = max((i for i, (_, response) in turns if response.observation), default=0)
    return tuple(item for _, response in rollout.turns[last:] for item in response.items)
