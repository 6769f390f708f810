"""Inspection of protocols: which components of the library implement one.

Command-line values such as `Updates(2)` are resolved with it.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from grupo.util.in_memory import InMemory

P = TypeVar("P", bound=type)
HOME = "__implemented_in__"  # attribute of a protocol: the package of its implementations


def implemented_in(package: str) -> Callable[[P], P]:
    """A decorator of a protocol: the public names of `package` are its implementations.

    Without it, they are searched where the protocol is defined.

    Args:
        package: A package or module of the library, whose `__all__` has the names. It may lie in a
            higher layer: it is imported when a text names an implementation.
    """

    def mark(protocol: P) -> P:
        setattr(protocol, HOME, package)
        return protocol

    return mark


def is_protocol(hint: Any) -> bool:
    """True if a type is a protocol, which any class with its methods implements."""
    return isinstance(hint, type) and typing.Protocol in hint.__bases__


def protocol_methods(protocol: type) -> set[str]:
    """The methods that a class needs to implement a protocol.

    >>> from grupo.core.schedules import Schedule
    >>> protocol_methods(Schedule)
    {'value'}
    """
    functions = {name: x for name, x in vars(protocol).items() if isinstance(x, types.FunctionType)}
    return {name for name, x in functions.items() if x.__module__ == protocol.__module__}


def protocol_members(protocol: type) -> set[str]:
    """The methods and properties that an object needs to implement a protocol.

    >>> class Named(typing.Protocol):
    ...     @property
    ...     def name(self) -> str: ...
    >>> protocol_members(Named)
    {'name'}
    """
    properties = {name for name, x in vars(protocol).items() if isinstance(x, property)}
    return protocol_methods(protocol) | properties


@cache
def available_components(hint: Any) -> dict[str, Any]:
    """The library's components and plain functions that a field of type `hint` accepts, by name.

    If the type is a component's class, the result is the class itself. If it is a protocol, the
    result is every implementation that the protocol's module or package defines, or that the
    package in its `implemented_in` defines.

    >>> from grupo.algo.minibatches import UpdatePlan
    >>> sorted(available_components(UpdatePlan))
    ['SingleUpdate', 'Updates']
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [available_components(member) for member in typing.get_args(hint)]
        return {name: x for components in members for name, x in components.items()}
    if not isinstance(hint, type) or not hint.__module__.startswith("grupo."):
        return {}
    if issubclass(hint, InMemory):  # no text can name such an object
        return {}
    return {hint.__name__: hint} if is_dataclass(hint) else dict(_implementations(hint))


def _implementations(hint: type) -> Iterator[tuple[str, Any]]:
    if HOME in vars(hint):
        package = import_module(vars(hint)[HOME])
        named = ((name, getattr(package, name)) for name in package.__all__)
        yield from ((name, x) for name, x in named if _implements(x, hint))
        return
    home = hint.__module__
    if home.endswith((".base", ".combinators")):  # the protocol of a whole package
        home = home.rpartition(".")[0]
    for name, candidate in vars(import_module(home)).items():
        is_local = f"{getattr(candidate, '__module__', '')}.".startswith(f"{home}.")
        if is_local and not name.startswith("_") and _implements(candidate, hint):
            yield name, candidate


def _implements(candidate: Any, hint: type) -> bool:
    if isinstance(candidate, type):
        return is_dataclass(candidate) and _class_implements(candidate, hint)
    is_function = isinstance(candidate, types.FunctionType)
    if not is_function or not is_protocol(hint) or protocol_methods(hint) != {"__call__"}:
        return False
    return _count_parameters(candidate) == _count_parameters(vars(hint)["__call__"]) - 1


def _class_implements(candidate: type, hint: type) -> bool:
    if is_protocol(hint):
        return protocol_methods(hint) <= set(dir(candidate))
    return issubclass(candidate, hint)


def _count_parameters(function: types.FunctionType) -> int:
    return len(inspect.signature(function).parameters)
