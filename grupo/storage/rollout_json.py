"""One rollout as plain data, and back."""

from collections.abc import Mapping
from typing import Any

from grupo.core.types import Action, Observation, Rollout


def to_data(rollout: Rollout) -> dict[str, Any]:
    """The rollout as JSON can hold it: its tokens and their log-probabilities, bit for bit."""
    turns = [[seen, vars(action)] for seen, action in rollout.turns]
    return {**vars(rollout), "turns": turns}


def from_data(data: Mapping[str, Any]) -> Rollout:
    """What `to_data` wrote."""
    turns = tuple((as_observation(seen), _action(action)) for seen, action in data["turns"])
    marks = {name: tuple(numbers) for name, numbers in data["marks"].items()}
    return Rollout(**{**data, "turns": turns, "marks": marks})


def as_observation(value: Any) -> Observation:
    """What the world said, a chat as a tuple again."""
    return value if isinstance(value, str) else tuple(value)


def _action(data: Mapping[str, Any]) -> Action:
    tuples = {name: tuple(data[name]) for name in ("parts", "logp", "seen")}
    return Action(**{**data, **tuples})
