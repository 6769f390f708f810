"""Components: frozen dataclasses, mostly callable, that print as the code that makes them."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True)
def component(cls: C) -> C:
    """Make a class a frozen dataclass that compares by value and prints as the code that makes it.

    >>> @component
    ... class Shift:
    ...     by: float = 1.0
    >>> Shift(2.0), Shift(2.0) == Shift(2.0)
    (Shift(by=2.0), True)
    """
    decorated = dataclass(frozen=True, repr=False)(cls)
    if decorated.__repr__ is object.__repr__:
        decorated.__repr__ = _repr
    return decorated


def to_code(value: object) -> str:
    """The code that makes `value`, with functions by name instead of address.

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
    """True for an instance of a dataclass, False for the class itself."""
    return is_dataclass(value) and not isinstance(value, type)


def component_fields(value: Any) -> dict[str, Any]:
    """The fields that a component was constructed with, by name."""
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init}


def walk(value: object) -> Iterator[object]:
    """The value and everything inside it: fields of components, entries of tuples and mappings.

    >>> from grupo.algo.advantages import Center, ClampAdvantage, chain
    >>> [type(part).__name__ for part in walk(chain(Center(), ClampAdvantage(0.0, 1.0)))]
    ['Chain', 'tuple', 'Center', 'function', 'ClampAdvantage', 'float', 'float']
    """
    yield value
    for child in _children(value):
        yield from walk(child)


def _children(value: object) -> list[object]:
    if is_component(value):
        return list(component_fields(value).values())
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, tuple | list | set | frozenset) else []


def _repr(self: Any) -> str:
    arguments = (f"{f.name}={to_code(getattr(self, f.name))}" for f in _shown_fields(self))
    return f"{type(self).__name__}({', '.join(arguments)})"


def _shown_fields(value: Any) -> list[Field[Any]]:
    """All fields but functions left at their default."""
    return [
        f
        for f in fields(value)
        if not (isinstance(f.default, FunctionType) and getattr(value, f.name) is f.default)
    ]
