"""The fields of all components of the library, by reflection, and components with one odd value."""

import inspect
import pkgutil
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal

import grupo
from grupo.util.in_memory import MissingObject

PRESENT = MissingObject("a value", "nothing")  # it has every type


@dataclass(frozen=True)
class ComponentField:
    """A field that a component is constructed with.

    Args:
        owner: The component's class.
        name: The field.
        hint: Its type, with annotations.
    """

    owner: type
    name: str
    hint: Any

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"

    def make(self, value: Any) -> Any:
        """The component with this value, and placeholders in all fields without a default."""
        hints = typing.get_type_hints(self.owner, include_extras=True)
        required = {
            f.name: placeholder(hints[f.name])
            for f in fields(self.owner)
            if f.init and f.default is MISSING and f.default_factory is MISSING
        }
        return self.owner(**{**required, self.name: value})


def placeholder(hint: Any) -> Any:
    """A value of a type, as far as the types of fields are checked."""
    for member in leaves(hint):
        if typing.get_origin(member) is Literal:
            return typing.get_args(member)[0]
        if member is float:  # some modules check the types of numbers in tests
            return 0.5
    return PRESENT


def is_component(cls: object) -> bool:
    """True for a class of components, whose fields are checked when one is made."""
    post_init = getattr(cls, "__post_init__", None)
    is_checked = getattr(post_init, "__qualname__", "").startswith("_with_field_checks.")
    return isinstance(cls, type) and is_dataclass(cls) and is_checked


@cache
def component_fields() -> tuple[ComponentField, ...]:
    """The fields of every component of the library."""
    return tuple(
        ComponentField(cls, f.name, typing.get_type_hints(cls, include_extras=True)[f.name])
        for cls in component_classes()
        for f in fields(cls)
        if f.init
    )


@cache
def component_classes() -> tuple[type, ...]:
    """Every class of components of the library, private ones included."""
    found: dict[type, None] = {}
    for module in pkgutil.walk_packages(grupo.__path__, "grupo."):
        if not module.name.endswith("__main__"):
            for value in vars(import_module(module.name)).values():
                if is_component(value) and value.__module__ == module.name:
                    found[value] = None
    return tuple(c for c in found if not inspect.isabstract(c))


def leaves(hint: Any) -> Iterator[Any]:
    """The members of a union, without annotations."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        yield from leaves(typing.get_args(hint)[0])
    elif origin in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from leaves(member)
    else:
        yield hint


def takes_whole_numbers(hint: Any) -> bool:
    """True if a field holds whole numbers and no others."""
    return int in leaves(hint) and not takes_floats(hint)


def takes_floats(hint: Any) -> bool:
    """True if a field holds floats."""
    return float in leaves(hint)


def takes_lists(hint: Any) -> bool:
    """True if a field holds a tuple of any length, a list, a set or a mapping."""
    for member in leaves(hint):
        origin = typing.get_origin(member) or member
        is_fixed = origin is tuple and typing.get_args(member)[-1:] != (...,)
        containers = (Sequence, Collection, Mapping, list, set, frozenset, dict)
        if (origin is tuple and not is_fixed) or origin in containers:
            return True
    return False
