"""Pieces as plain data, for a run's folder, and back; and changes to them from a command line."""

import ast
import types
import typing
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from grupo import schedules
from grupo.errors import Refused, nearest
from grupo.imports import address_of, find
from grupo.piece import is_piece, parts, show
from grupo.schedules import Schedule

_PLAIN = str | int | float | bool | None


def to_data(value: Any) -> Any:
    """A piece as JSON can hold it: classes and functions by their address.

    >>> from grupo.losses import KL
    >>> to_data(KL())["estimate"]
    {'function': 'grupo.divergences:k3'}
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return {"tuple": [to_data(v) for v in value]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if is_piece(value):
        inside = {name: to_data(part) for name, part in parts(value).items()}
        return {"piece": address_of(type(value)), **inside}
    if callable(value):
        return {"function": address_of(value)}
    raise Refused(f"{value!r} cannot be written down: a recipe holds numbers, texts and pieces.")


def from_data(data: Any) -> Any:
    """What `to_data` wrote."""
    if not isinstance(data, Mapping):
        return data
    if "piece" in data:  # first: a piece may have fields of the names below
        return find(data["piece"])(**{k: from_data(v) for k, v in data.items() if k != "piece"})
    if "tuple" in data:
        return tuple(from_data(v) for v in data["tuple"])
    return Path(data["path"]) if "path" in data else find(data["function"])


def changed(piece: Any, field: str, text: str) -> Any:
    """The piece with one field, dotted where it lies deeper, set to what `text` says.

    >>> from grupo.losses import Clip
    >>> changed(Clip(), "high", "0.28")
    Clip(low=0.2, high=0.28)
    """
    name, _, deeper = field.partition(".")
    fields = parts(piece) if is_piece(piece) else {}
    if name not in fields:
        raise Refused(f"{type(piece).__name__} has no field {name!r}. {nearest(name, fields)}")
    hint = typing.get_type_hints(type(piece))[name]
    new = changed(fields[name], deeper, text) if deeper else read(text, hint, field)
    return replace(piece, **{name: new})


def read(text: str, hint: Any, field: str) -> Any:
    """The value that `text` spells for a field of type `hint`: number, text, tuple or schedule."""
    value = _value(text)
    if isinstance(value, int) and not isinstance(value, bool) and not fits(value, hint):
        value = float(value)
    value = value if fits(value, hint) else text
    if not fits(value, hint):
        raise Refused(f"{field}: {text!r} does not fit. Allowed: {_say(hint)}.")
    return value


def fits(value: Any, hint: Any) -> bool:
    """Is the value of this type? Only numbers, texts, tuples, pieces and schedules are told apart.

    >>> fits(0.5, float), fits(True, int), fits((1, 2), tuple[int, ...])
    (True, False, True)
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(v, inside[0]) for v in value)
    if hint is Any:
        return True
    if hint in (str, int, float, bool, types.NoneType):
        return type(value) is hint
    return isinstance(hint, type) and is_piece(value) and isinstance(value, hint)


def _value(text: str) -> Any:
    """A literal, a schedule such as Linear(1.0, 0.0), or the text itself."""
    try:
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            return _schedule(tree.func.id, tree)
        return ast.literal_eval(tree)
    except (SyntaxError, ValueError):
        return text


def _schedule(name: str, call: ast.Call) -> Schedule:
    known = {"Linear": schedules.Linear, "Cosine": schedules.Cosine, "Warmup": schedules.Warmup}
    if name not in known:
        raise Refused(f"There is no schedule {name!r}. {nearest(name, known)}")
    given = [_value(ast.unparse(argument)) for argument in call.args]
    named = {str(k.arg): _value(ast.unparse(k.value)) for k in call.keywords}
    try:
        return known[name](*given, **named)
    except TypeError as error:
        raise Refused(f"{show(known[name])}: {error}") from error


def _say(hint: Any) -> str:
    inside = typing.get_args(hint)
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return " or ".join(map(_say, inside)) if union else getattr(hint, "__name__", str(hint))
