"""What a command line says of a piece: its fields by dotted names, their values as Python has them.

A value is a literal, a text, or a piece written as the code that makes it: `Cosine(1e-5, 0)`,
`Lora(rank=8)`, `Updates(2, minibatches=4)`. Which pieces a field takes follows from its type: a
piece's own class, or whatever fills the seam among the names of the module where the seam is at
home. Nothing is evaluated: a call is read, and the piece is made from it.
"""

import ast
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from difflib import get_close_matches
from typing import Any

from grupo.core.component import component_fields, is_component
from grupo.core.controllers import Controller
from grupo.core.errors import ConfigError, suggest
from grupo.core.protocols import available_components
from grupo.core.schedules import Schedule
from grupo.core.serialization import coerce_number, matches_type

TYPE_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    types.NoneType: "None",
}


def set_field(component: Any, field: str, text: str, path: str = "") -> Any:
    """The piece with one field, dotted where it lies deeper, set to what `text` says.

    >>> from grupo.algo.losses import Clip
    >>> set_field(Clip(), "high", "0.28")
    Clip(clip_low=0.2, clip_high=0.28)
    """
    name, _, deeper = field.partition(".")
    own, place = component_fields(component) if is_component(component) else {}, f"{path}{name}"
    if name not in own:
        raise ConfigError(
            f"{place}: {type(component).__name__} has no field {name!r}. {suggest_field(name, component)}"
        )
    hint = _hints(type(component))[name]
    new = (
        set_field(own[name], deeper, text, f"{place}.")
        if deeper
        else parse_value(text, hint, place)
    )
    return _with_field_in_error(lambda: replace(component, **{name: new}), f"{path}{field}", text)


def parse_value(text: str, hint: Any, field: str) -> Any:
    """The value that `text` spells for a field of type `hint`.

    >>> from grupo.algo.minibatches import Plan
    >>> parse_value("Updates(2, minibatches=4)", Plan, "plan"), parse_value("('a', 'b')", tuple[str, ...], "stop")
    (Updates(epochs=2, minibatches=4), ('a', 'b'))
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        value = text
    else:
        value = _value(node, hint, field)
        if isinstance(value, str) and not isinstance(node, ast.Constant):
            value = text  # as it was written: gpt2-medium is no difference
    chosen = value if matches_type(value, hint) else text
    if not matches_type(chosen, hint):
        raise ConfigError(f"{field}: {text!r} does not fit. Allowed: {describe_type(hint)}.")
    return chosen


def suggest_field(name: str, component: Any, other_names: typing.Collection[str] = ()) -> str:
    """The end of a message: the field nearest to `name`, however deep it lies, and those on top."""
    own = component_fields(component) if is_component(component) else {}
    leaves = {
        _last_segment(place): place for place in reversed([*field_paths(component), *other_names])
    }
    close = get_close_matches(name, leaves, n=1, cutoff=0.7)
    deeper = f"Did you mean {leaves[close[0]]!r}? " if close else ""
    ending = suggest("" if deeper else name, [*own, *other_names])
    return deeper + ending


def field_paths(component: Any) -> Iterator[str]:
    """Every field of a piece by its dotted name, those of the pieces in it included.

    >>> from grupo.rollouts.evaluate import SuccessCriterion
    >>> list(field_paths(SuccessCriterion()))
    ['part', 'at_least']
    """
    inside = component_fields(component) if is_component(component) else {}
    yield from inside
    for name, value in inside.items():
        yield from (f"{name}.{deeper}" for deeper in field_paths(value))


def describe_type(hint: Any) -> str:
    """A type as messages say it, with the pieces that fit."""
    inside = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(describe_type, inside)))
    if typing.get_origin(hint) is tuple:
        return f"a tuple (…,) of which each is {describe_type(inside[0])}"
    named = [
        name + "(…)" * isinstance(x, type) for name, x in sorted(available_components(hint).items())
    ]
    return TYPE_NAMES.get(hint) or " or ".join(named) or "what only a recipe in Python can say"


def _hints(kind: type) -> dict[str, Any]:
    """The types of a piece's fields; wherever a plain number stands, so may one that changes."""
    hints = typing.get_type_hints(kind)
    changing = float | Schedule | Controller
    return {name: changing if hint is float else hint for name, hint in hints.items()}


def _value(node: ast.expr, hint: Any, field: str) -> Any:
    """What code says: a piece or a function by its name, a tuple of them, a literal, or a text."""
    known = available_components(hint)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and known:
        return _build_call(node, node.func.id, known, field)
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.Tuple) and typing.get_origin(hint) is tuple:
        inside = typing.get_args(hint)
        hints = inside[:1] * len(node.elts) if inside[-1:] == (...,) else inside
        if len(hints) == len(node.elts):
            return tuple(map(_value, node.elts, hints, [field] * len(hints)))
    try:
        return coerce_number(ast.literal_eval(node), hint)
    except (ValueError, TypeError):
        return ast.unparse(node)


def _build_call(call: ast.Call, name: str, known: dict[str, Any], field: str) -> Any:
    """The piece that a call makes."""
    kinds = {n: kind for n, kind in known.items() if isinstance(kind, type)}
    if name not in kinds:
        raise ConfigError(f"{field}: there is no {name!r} to be made here. {suggest(name, kinds)}")
    kind, hints = kinds[name], _hints(kinds[name])
    given = {}
    for argument, node in _bind_arguments(call, kind, field).items():
        value = _value(node, hints[argument], f"{field}, {name}'s {argument}")
        if not matches_type(value, hints[argument]):
            said = f"{ast.unparse(node)} does not fit. Allowed: {describe_type(hints[argument])}"
            raise ConfigError(f"{field}: {name}'s {argument}: {said}.")
        given[argument] = value
    return _with_field_in_error(lambda: kind(**given), field, ast.unparse(call))


def _bind_arguments(call: ast.Call, kind: type[Any], field: str) -> dict[str, ast.expr]:
    """The code given to each field of a piece."""
    known = {f.name: f for f in fields(kind) if f.init}
    names = [*list(known)[: len(call.args)], *(str(keyword.arg) for keyword in call.keywords)]
    code = [*call.args, *(keyword.value for keyword in call.keywords)]
    made = f"{kind.__name__}({', '.join(known)})"
    if len(names) < len(code) or len(set(names)) < len(names):
        raise ConfigError(f"{field}: {ast.unparse(call)!r} says too much. Allowed: {made}.")
    for name in names:
        if name not in known:
            raise ConfigError(f"{field}: {kind.__name__} has no {name!r}. {suggest(name, known)}")
    for name, f in known.items():
        if name not in names and f.default is f.default_factory is MISSING:
            raise ConfigError(f"{field}: {ast.unparse(call)!r} lacks {name!r}. Allowed: {made}.")
    return dict(zip(names, code, strict=True))


def _with_field_in_error(make: typing.Callable[[], Any], field: str, text: str) -> Any:
    """What `writer_class` makes; a piece that checks itself may stumble over a value of another kind."""
    try:
        return make()
    except ConfigError as error:
        raise ConfigError(
            f"{field}: {str(error).removeprefix(f'{_last_segment(field)}: ')}"
        ) from error
    except TypeError as error:
        raise ConfigError(f"{field}: {text!r} does not fit: {error}.") from error


def _last_segment(field: str) -> str:
    return field.rpartition(".")[2]
