"""What of a rollout is read before its next action, as tokens."""

from typing import Any

from grupo.core.types import Rollout


def context_tokens(rollout: Rollout) -> tuple[Any, ...]:
    """All that was seen and said since its context began."""
    turns = rollout.contexts[-1].turns
    return tuple(x for _, action in turns for x in (*action.observation, *action.items))


def open_action_tokens(rollout: Rollout) -> tuple[Any, ...]:
    """What was said since anything was read."""
    last = max((i for i, (_, action) in enumerate(rollout.turns) if action.observation), default=0)
    return tuple(x for _, action in rollout.turns[last:] for x in action.items)
