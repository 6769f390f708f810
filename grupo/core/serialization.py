"""Pieces as plain data, for a run's folder, and back; and which values fit which fields."""

import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from grupo.core.component import is_piece, parts
from grupo.core.errors import Refused, nearest
from grupo.core.importing import address_of, find
from grupo.core.protocols import asked_of, is_seam

_PLAIN = str | int | float | bool | None


def to_data(value: Any, at: str = "recipe") -> Any:
    """A piece as JSON can hold it: classes and functions by their address.

    `at` says in messages where the value lies.

    >>> from grupo.algo.losses import KL
    >>> to_data(KL())["estimate"]
    {'function': 'grupo.algo.divergences:k3'}
    """
    if isinstance(value, float) and math.isnan(value):
        raise Refused(f"{at}: nan. Allowed: a number.")
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return {"tuple": [to_data(v, f"{at}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if is_piece(value):
        inside = {name: to_data(part, f"{at}.{name}") for name, part in parts(value).items()}
        if "piece" in inside:
            raise Refused(f"{at}.piece: the name is taken. Call this field of a piece otherwise.")
        return {"piece": address_of(type(value), at), **inside}
    if callable(value):
        return {"function": address_of(value, at)}
    raise Refused(
        f"{at}: {value!r} is a {type(value).__name__}, which a run's folder cannot hold."
        " Allowed: numbers, texts, tuples, paths, pieces, functions."
    )


def from_data(data: Any) -> Any:
    """What `to_data` wrote; of what is named in it nothing but a piece is called."""
    if not isinstance(data, Mapping):
        return data
    if "piece" in data:  # first: a piece may have fields of the names below
        return _made(find(data["piece"]), {k: v for k, v in data.items() if k != "piece"})
    if "tuple" in data:
        return tuple(from_data(v) for v in data["tuple"])
    if "path" in data:
        return Path(data["path"])
    if "function" in data:
        return find(data["function"])
    raise Refused(f"{str(data)[:80]} is nothing that a recipe is written as.")


def _made(kind: Any, inside: Mapping[str, Any]) -> Any:
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise Refused(f"{kind!r} is no piece: a recipe is made of pieces alone.")
    known = {f.name: f for f in fields(kind) if f.init}
    for name in inside:
        if name not in known:
            raise Refused(f"{kind.__name__} has no field {name!r}. {nearest(name, known)}")
    for name, field in known.items():
        if name not in inside and field.default is field.default_factory is MISSING:
            raise Refused(f"{kind.__name__} lacks its field {name!r}.")
    return kind(**{name: from_data(value) for name, value in inside.items()})


def fits(value: Any, hint: Any) -> bool:
    """Is the value of this type? A function fits whatever is called.

    >>> fits(0.5, float), fits(True, int), fits((1, 2), tuple[int, ...])
    (True, False, True)
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and _each_fits(value, inside)
    if origin is Callable:
        return callable(value)
    if hint is Any:
        return True
    if hint in (str, int, float, bool, types.NoneType):
        return isinstance(value, hint) and isinstance(value, bool) == (hint is bool)
    if is_seam(hint):
        return not isinstance(value, type) and asked_of(hint) <= set(dir(type(value)))
    return isinstance(hint, type) and is_piece(value) and isinstance(value, hint)


def _each_fits(value: tuple[Any, ...], inside: tuple[Any, ...]) -> bool:
    if inside[-1:] == (...,):
        return all(fits(one, inside[0]) for one in value)
    return len(value) == len(inside) and all(map(fits, value, inside))


def cast(value: Any, hint: Any) -> Any:
    """The value; a whole number where only a float fits becomes one.

    >>> cast(1, float), cast(1, int | float)
    (1.0, 1)
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and not fits(value, hint) and fits(float(value), hint) else value
