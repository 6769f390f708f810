"""Tasks, rollouts and results as JSON bytes, and back: equal in types and in the bits of floats."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from grupo.core.types import Response, RewardResult, Rollout, Seat, Task
from grupo.util.errors import ConfigError

DATA_CLASSES = {cls.__name__: cls for cls in (Response, RewardResult, Rollout, Seat, Task)}
TAG = "$"  # begins the key of an object that stands for a value which JSON does not have
_SCALARS = {bool, float, int, str, type(None)}


def to_bytes(value: Any, name: str) -> bytes:
    """The value as JSON; tuples, keys that are no strings and NaN are kept.

    Args:
        value: Numbers, strings, None, lists, tuples, mappings, and the data of rollouts.
        name: Name of the value, for error messages.

    Raises:
        ConfigError: It holds a value of another type.

    >>> from_bytes(to_bytes({"a": (1, 2.5), 3: [None]}, "columns"))
    {'a': (1, 2.5), 3: [None]}
    """
    return json.dumps(_plain(value, name)).encode()


def from_bytes(data: bytes) -> Any:
    """The value that `to_bytes` wrote."""
    return json.loads(data, object_hook=_value)


def _plain(value: Any, name: str) -> Any:
    """The value with objects of JSON in place of everything that JSON does not have."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return {f"{TAG}tuple": _plain_items(value, name)}
    if isinstance(value, list):
        return _plain_items(value, name)
    if isinstance(value, Mapping):
        return _plain_mapping(value, name)
    cls = type(value)
    if DATA_CLASSES.get(cls.__name__) is cls:
        data = {f.name: getattr(value, f.name) for f in fields(cls)}
        return {f"{TAG}{cls.__name__}": _plain_mapping(data, name)}
    raise ConfigError(
        f"{name}: a value of type {cls.__name__}, which cannot be sent to an actor of Ray. Allowed:"
        " numbers, strings, lists, tuples, mappings."
    )


def _plain_items(items: Sequence[Any], name: str) -> list[Any]:
    if set(map(type, items)) <= _SCALARS:  # tokens and log-probabilities
        return list(items)
    return [_plain(item, name) for item in items]


def _plain_mapping(mapping: Mapping[Any, Any], name: str) -> dict[str, Any]:
    if all(isinstance(key, str) and not key.startswith(TAG) for key in mapping):
        return {key: _plain(value, f"{name}.{key}") for key, value in mapping.items()}
    pairs = [[_plain(key, name), _plain(value, name)] for key, value in mapping.items()]
    return {f"{TAG}mapping": pairs}


def _value(data: dict[str, Any]) -> Any:
    """The value that an object of JSON stands for; its members are values already."""
    key = next(iter(data), "")
    if not key.startswith(TAG):
        return data
    content = data[key]
    kind = key.removeprefix(TAG)
    if kind == "tuple":
        return tuple(content)
    return dict(content) if kind == "mapping" else DATA_CLASSES[kind](**content)
