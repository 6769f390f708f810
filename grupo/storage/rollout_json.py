"""A rollout as JSON data, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from grupo.core.types import Observation, Response, Rollout, Seat


def to_data(rollout: Rollout) -> dict[str, Any]:
    """The rollout as JSON data, with exact tokens and log-probabilities."""
    turns = [[observation, vars(response)] for observation, response in rollout.turns]
    seat = asdict(rollout.seat) if rollout.seat else None
    return {**vars(rollout), "turns": turns, "seat": seat}


def from_data(data: Mapping[str, Any]) -> Rollout:
    """The rollout that `to_data` wrote."""
    turns = tuple((as_observation(text), _response(response)) for text, response in data["turns"])
    step_values = {name: tuple(values) for name, values in data["step_values"].items()}
    seat = Seat(**data["seat"]) if data["seat"] else None
    return Rollout(**{**data, "turns": turns, "step_values": step_values, "seat": seat})


def as_observation(value: Any) -> Observation:
    """An observation from JSON data; the messages of a chat become a tuple again."""
    return value if isinstance(value, str) else tuple(value)


def _response(data: Mapping[str, Any]) -> Response:
    tuples = {name: tuple(data[name]) for name in ("items", "logp", "observation")}
    later_parts = tuple((start, version) for start, version in data["later_parts"])
    return Response(**{**data, **tuples, "later_parts": later_parts})
