"""Types of fields: whether a value fits, and the type in words for error messages."""

import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal

from grupo.core.dynamic_number import DynamicNumber
from grupo.core.protocols import available_components, is_protocol, protocol_members
from grupo.util.in_memory import InMemory, MissingObject

TYPE_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    types.NoneType: "None",
}
SCALARS = tuple(TYPE_NAMES)


def matches_type(value: Any, hint: Any) -> bool:
    """True if the value has the type `hint`; for a callable type, any callable does.

    >>> matches_type(0.5, float), matches_type(True, int), matches_type((1, 2), tuple[int, ...])
    (True, False, True)
    """
    if type(value) is hint and hint in SCALARS:  # by far the most frequent case
        return True
    if isinstance(value, MissingObject):  # the object had the type when the run began
        return True
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, member) for member in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _items_match(value, arguments)
    if origin is Mapping:
        return isinstance(value, Mapping) and _entries_match(value, arguments)
    if origin is Callable:
        return callable(value)
    if hint is Any:
        return True
    if origin is Annotated:
        return matches_type(value, arguments[0])
    if origin is Literal:
        return value in arguments
    if hint in SCALARS:
        is_scalar = isinstance(value, hint) and not _is_instance_of_dataclass(value)
        return is_scalar and isinstance(value, bool) == (hint is bool)
    if is_protocol(hint):
        return not isinstance(value, type) and protocol_members(hint) <= set(dir(value))
    return isinstance(hint, type) and _is_instance_of_dataclass(value) and isinstance(value, hint)


def _items_match(value: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if hints[-1:] == (...,):
        return all(matches_type(item, hints[0]) for item in value)
    return len(value) == len(hints) and all(map(matches_type, value, hints))


def _entries_match(value: Mapping[Any, Any], hints: tuple[Any, ...]) -> bool:
    return all(matches_type(k, hints[0]) and matches_type(x, hints[1]) for k, x in value.items())


def coerce_number(value: Any, hint: Any) -> Any:
    """The value itself, or as a float if it is an int and `hint` only admits floats.

    >>> coerce_number(1, float), coerce_number(1, int | float)
    (1.0, 1)
    """
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if is_int and not matches_type(value, hint) and matches_type(0.0, hint):
        with suppress(OverflowError):  # above the largest float: no number for the field
            return float(value)
    return value


def describe_type(hint: Any) -> str:
    """A type in words, with the components that it admits, for error messages.

    >>> describe_type(float | None), describe_type(tuple[str, ...])
    ('a number or None', 'a tuple (…,) of which each is a string')
    """
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(describe_type, arguments)))
    if typing.get_origin(hint) is Annotated:
        return describe_type(arguments[0])
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(str, arguments))
    if typing.get_origin(hint) is tuple:
        return f"a tuple (…,) of which each is {describe_type(arguments[0])}"
    if typing.get_origin(hint) is Mapping:
        return "values by name, such as {'name': 1}"
    if isinstance(hint, type) and issubclass(hint, InMemory):
        return f"{hint.__name__}(…)"
    components = sorted(available_components(hint).items())
    names = [name + "(…)" * isinstance(x, type) for name, x in components]
    return (
        TYPE_NAMES.get(hint)
        or " or ".join(names)
        or "a value that is written in Python, or a table in a recipe file"
    )


def is_describable(hint: Any) -> bool:
    """True if messages can describe the values of a type in words."""
    origin = typing.get_origin(hint)
    if origin in (Literal, Mapping):
        return True
    if origin is Annotated:
        return is_describable(typing.get_args(hint)[0])
    if origin in (typing.Union, types.UnionType, tuple):
        inner = [x for x in typing.get_args(hint) if x is not ...]
        # a mapping beside other types has a message of its own
        return all(is_describable(x) and typing.get_origin(x) is not Mapping for x in inner)
    is_known = hint in TYPE_NAMES or is_dataclass(hint)
    return isinstance(hint, type) and (is_known or issubclass(hint, DynamicNumber))


def is_checkable(hint: Any) -> bool:
    """True if `matches_type` recognizes every value of a type."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, tuple):
        return all(is_checkable(inner) for inner in typing.get_args(hint) if inner is not ...)
    if origin is Annotated:
        return is_checkable(typing.get_args(hint)[0])
    return origin is Callable or is_protocol(hint) or is_describable(hint)


def _is_instance_of_dataclass(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
