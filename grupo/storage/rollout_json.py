"""A rollout as JSON data, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from grupo.core.types import Observation, Response, Rollout, Seat

TUPLES_OF_TEXTS = ("rejected", "notes", "parents")
OFTEN_EMPTY = ("id", *TUPLES_OF_TEXTS)  # left out where they are empty


def to_data(rollout: Rollout) -> dict[str, Any]:
    """The rollout as JSON data, with exact tokens and log-probabilities."""
    turns = [[observation, vars(response)] for observation, response in rollout.turns]
    seat = asdict(rollout.seat) if rollout.seat else None
    data = {**vars(rollout), "turns": turns, "seat": seat}
    for name in OFTEN_EMPTY:
        if not data[name]:
            del data[name]
    return data


def from_data(data: Mapping[str, Any]) -> Rollout:
    """The rollout that `to_data` wrote."""
    values: dict[str, Any] = {**data}
    values["turns"] = tuple((as_observation(text), _response(x)) for text, x in data["turns"])
    values["step_values"] = {name: tuple(x) for name, x in data["step_values"].items()}
    values |= {name: tuple(data.get(name, ())) for name in TUPLES_OF_TEXTS}
    values["seat"] = Seat(**data["seat"]) if data["seat"] else None
    return Rollout(**values)


def as_observation(value: Any) -> Observation:
    """An observation from JSON data; the messages of a chat become a tuple again."""
    return value if isinstance(value, str) else tuple(value)


def _response(data: Mapping[str, Any]) -> Response:
    values: dict[str, Any] = {**data}
    for name in ("items", "logp", "observation"):
        values[name] = tuple(data[name])
    values["later_parts"] = tuple((start, version) for start, version in data["later_parts"])
    return Response(**values)
