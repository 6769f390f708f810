"""Checks of what a server of OpenEnv sends, before anything else reads it."""

import json
import math
from collections.abc import Mapping
from typing import Any

from grupo.util.errors import ConfigError
from grupo.util.json_text import (
    check_depth,
    check_unicode,
    has_more_values,
    without_lone_surrogates,
)
from grupo.util.limits import OBSERVATION_VALUES

MAX_CHARS = 80  # of a value in a message


def checked_schema(schema: Any) -> Mapping[str, Any]:
    """The JSON schema of actions.

    Raises:
        ConfigError: It is no schema of an object.

    >>> checked_schema({"properties": ["column"]})
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: address: the schema of actions ...
    """
    try:
        check_depth(schema)
        check_unicode(schema)
    except ValueError as error:
        raise ConfigError(f"address: the schema of actions is malformed: {error}.") from error
    fields = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    is_object = isinstance(fields, Mapping) and all(isinstance(x, Mapping) for x in fields.values())
    required = schema.get("required", []) if is_object else None
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise ConfigError(
            f"address: the schema of actions is {_short(schema)}. Allowed: an object with"
            " `properties`, an object of schemas, and `required`, a list of names."
        )
    return schema


def check_reply(text: str | bytes) -> None:
    """Raise `RuntimeError` for a reply that is neither an observation nor an error.

    OpenEnv's client reads a reply without an observation as an empty one without a reward.

    >>> check_reply('{"type": "state"}')
    Traceback (most recent call last):
    RuntimeError: the server's reply is {'type': 'state'}, which has no observation
    """
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"the server's reply is not JSON: {text[:MAX_CHARS]!a}") from error
    if has_more_values(reply, OBSERVATION_VALUES.maximum):
        raise RuntimeError(f"the server's reply has too many values: {OBSERVATION_VALUES.allowed}")
    kind, data = _field(reply, "type"), _field(reply, "data")
    is_error = kind == "error" and isinstance(data, Mapping)
    is_observation = kind == "observation" and isinstance(_field(data, "observation"), Mapping)
    if not is_error and not is_observation:
        raise RuntimeError(f"the server's reply is {_short(reply)}, which has no observation")


def checked_result(result: Any) -> tuple[Mapping[str, Any], float, bool]:
    """The observation, the reward and the end in a result.

    Raises:
        RuntimeError: They have other types, or the reward is infinite.
    """
    observation, done = result.observation, result.done
    reward = 0.0 if result.reward is None else result.reward
    try:
        check_depth(observation)
        value = float(reward) if isinstance(reward, int | float) else math.nan
    except (ValueError, OverflowError) as error:
        raise RuntimeError(f"the server's result is malformed: {error}") from error
    if not isinstance(observation, Mapping):
        raise RuntimeError(f"the server's observation is {_short(observation)}, no object")
    if not math.isfinite(value):
        raise RuntimeError(f"the server's reward is {_short(reward)}, no finite number")
    if not isinstance(done, bool | None):
        raise RuntimeError(f"the server's `done` is {_short(done)}, neither true nor false")
    return without_lone_surrogates(observation), value, bool(done)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _short(value: Any) -> str:
    return ascii(value)[:MAX_CHARS]
