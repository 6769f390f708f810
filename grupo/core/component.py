"""Pieces: frozen dataclasses that are called like functions, and print as the code that makes
them."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True)
def component(cls: C) -> C:
    """A frozen dataclass that compares by value and prints as the code that makes it.

    >>> @piece
    ... class Shift:
    ...     by: float = 1.0
    >>> Shift(2.0), Shift(2.0) == Shift(2.0)
    (Shift(by=2.0), True)
    """
    made = dataclass(frozen=True, repr=False)(cls)
    if made.__repr__ is object.__repr__:
        made.__repr__ = _repr
    return made


def to_code(value: object) -> str:
    """The code that makes `value`: functions by name, never an address.

    >>> from grupo.core import group_ops
    >>> to_code((group_ops.mean, 0.2))
    '(group_ops.mean, 0.2)'
    """
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        module = value.__module__.rpartition(".")[2]
        return value.__qualname__ if module == "builtins" else f"{module}.{value.__qualname__}"
    if isinstance(value, tuple):
        return f"({', '.join(map(to_code, value))}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {to_code(v)}' for k, v in value.items())}}}"
    return repr(value)


def is_component(value: object) -> bool:
    """Is this an instance of a frozen dataclass?"""
    return is_dataclass(value) and not isinstance(value, type)


def component_fields(value: Any) -> dict[str, Any]:
    """The fields a piece was made with, by name."""
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init}


def walk(value: object) -> Iterator[object]:
    """Everything a value is made of, itself first: fields of pieces, members of tuples and maps.

    >>> from grupo.algo.advantages import Center, ClampAdvantage, chain
    >>> [type(part).__name__ for part in walk(chain(Center(), ClampAdvantage(0.0, 1.0)))]
    ['Chain', 'tuple', 'Center', 'function', 'Clipped', 'float', 'float']
    """
    yield value
    for inside in _children(value):
        yield from walk(inside)


def _children(value: object) -> list[object]:
    if is_component(value):
        return list(component_fields(value).values())
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, tuple | list | set | frozenset) else []


def _repr(self: Any) -> str:
    given = ", ".join(f"{f.name}={to_code(getattr(self, f.name))}" for f in _shown_fields(self))
    return f"{type(self).__name__}({given})"


def _shown_fields(value: Any) -> list[Field[Any]]:
    """A function left at its default goes without saying."""
    return [
        f
        for f in fields(value)
        if not (isinstance(f.default, FunctionType) and getattr(value, f.name) is f.default)
    ]
