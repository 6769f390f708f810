"""Checks of what a server of OpenEnv sends, before anything else reads it."""

import math
from collections.abc import Mapping
from typing import Any

from grupo.util.errors import ConfigError
from grupo.util.json_text import check_depth, check_unicode, without_lone_surrogates

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


def _short(value: Any) -> str:
    return ascii(value)[:MAX_CHARS]
