"""Pieces as plain data, for a run's folder, and back; and which values fit which fields."""

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from grupo.core.component import component_fields, is_component
from grupo.core.errors import ConfigError, suggest
from grupo.core.importing import address_of, import_object
from grupo.core.protocols import is_protocol, protocol_methods

_JSON_SCALARS = str | int | float | bool | None


def to_data(value: Any, path: str = "recipe") -> Any:
    """A piece as JSON can hold it: classes and functions by their address.

    `at` says in messages where the value lies.

    >>> from grupo.algo.losses import KL
    >>> to_data(KL())["estimate"]
    {'function': 'grupo.algo.divergences:k3'}
    """
    if isinstance(value, float) and math.isnan(value):
        raise ConfigError(f"{path}: nan. Allowed: a number.")
    if isinstance(value, _JSON_SCALARS):
        return value
    if isinstance(value, tuple):
        return {"tuple": [to_data(v, f"{path}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if is_component(value):
        inside = {
            name: to_data(part, f"{path}.{name}") for name, part in component_fields(value).items()
        }
        if "piece" in inside:
            raise ConfigError(
                f"{path}.piece: the name is taken. Call this field of a piece otherwise."
            )
        return {"piece": address_of(type(value), path), **inside}
    if callable(value):
        return {"function": address_of(value, path)}
    raise ConfigError(
        f"{path}: {value!r} is a {type(value).__name__}, which a run's folder cannot hold."
        " Allowed: numbers, texts, tuples, paths, pieces, functions."
    )


def from_data(data: Any) -> Any:
    """What `to_data` wrote; of what is named in it nothing but a piece is called."""
    if not isinstance(data, Mapping):
        return data
    if "piece" in data:  # first: a piece may have fields of the names below
        return _build_component(
            import_object(data["piece"]), {k: v for k, v in data.items() if k != "piece"}
        )
    if "tuple" in data:
        return tuple(from_data(v) for v in data["tuple"])
    if "path" in data:
        return Path(data["path"])
    if "function" in data:
        return import_object(data["function"])
    raise ConfigError(f"{str(data)[:80]} is nothing that a recipe is written as.")


def _build_component(kind: Any, inside: Mapping[str, Any]) -> Any:
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise ConfigError(f"{kind!r} is no piece: a recipe is made of pieces alone.")
    known = {f.name: f for f in fields(kind) if f.init}
    for name in inside:
        if name not in known:
            raise ConfigError(f"{kind.__name__} has no field {name!r}. {suggest(name, known)}")
    for name, field in known.items():
        if name not in inside and field.default is field.default_factory is MISSING:
            raise ConfigError(f"{kind.__name__} lacks its field {name!r}.")
    return kind(**{name: from_data(value) for name, value in inside.items()})


def matches_type(value: Any, hint: Any) -> bool:
    """Is the value of this type? A function fits whatever is called.

    >>> matches_type(0.5, float), matches_type(True, int), matches_type((1, 2), tuple[int, ...])
    (True, False, True)
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and _items_match(value, inside)
    if origin is Callable:
        return callable(value)
    if hint is Any:
        return True
    if hint in (str, int, float, bool, types.NoneType):
        return isinstance(value, hint) and isinstance(value, bool) == (hint is bool)
    if is_protocol(hint):
        return not isinstance(value, type) and protocol_methods(hint) <= set(dir(type(value)))
    return isinstance(hint, type) and is_component(value) and isinstance(value, hint)


def _items_match(value: tuple[Any, ...], inside: tuple[Any, ...]) -> bool:
    if inside[-1:] == (...,):
        return all(matches_type(one, inside[0]) for one in value)
    return len(value) == len(inside) and all(map(matches_type, value, inside))


def coerce_number(value: Any, hint: Any) -> Any:
    """The value; a whole number where only a float fits becomes one.

    >>> coerce_number(1, float), coerce_number(1, int | float)
    (1.0, 1)
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    return (
        float(value)
        if whole and not matches_type(value, hint) and matches_type(float(value), hint)
        else value
    )
