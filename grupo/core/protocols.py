"""Seams: the protocols at which the library is taken apart, and what of it fills each."""

import inspect
import types
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any


def is_protocol(hint: Any) -> bool:
    """Is this a protocol, which whatever has its methods fills?"""
    return isinstance(hint, type) and typing.Protocol in hint.__bases__


def protocol_methods(protocol: type) -> set[str]:
    """The methods by which a seam is filled.

    >>> from grupo.core.schedules import Schedule
    >>> protocol_methods(Schedule)
    {'value'}
    """
    own = {name: x for name, x in vars(protocol).items() if isinstance(x, types.FunctionType)}
    return {name for name, x in own.items() if x.__module__ == protocol.__module__}


@cache
def available_components(hint: Any) -> dict[str, Any]:
    """What a field of this type can hold of the library, by name: pieces, and plain functions.

    A piece's own class; for a seam whatever fills it among the names of the module, or the package,
    where it is at home.

    >>> from grupo.algo.minibatches import Plan
    >>> sorted(available_components(Plan))
    ['OnePass', 'Passes']
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return {
            name: x
            for one in typing.get_args(hint)
            for name, x in available_components(one).items()
        }
    if not isinstance(hint, type) or not hint.__module__.startswith("grupo."):
        return {}
    return {hint.__name__: hint} if is_dataclass(hint) else dict(_implementations(hint))


def _implementations(hint: type) -> Iterator[tuple[str, Any]]:
    home = hint.__module__
    if home.endswith((".base", ".combinators")):  # the protocol of a whole package
        home = home.rpartition(".")[0]
    for name, thing in vars(import_module(home)).items():
        own = f"{getattr(thing, '__module__', '')}.".startswith(f"{home}.")
        if own and not name.startswith("_") and _implements(thing, hint):
            yield name, thing


def _implements(candidate: Any, hint: type) -> bool:
    if isinstance(candidate, type):
        fitting = (
            protocol_methods(hint) <= set(dir(candidate))
            if is_protocol(hint)
            else issubclass(candidate, hint)
        )
        return is_dataclass(candidate) and fitting
    called = isinstance(candidate, types.FunctionType) and protocol_methods(hint) == {"__call__"}
    return (
        called
        and is_protocol(hint)
        and _count_parameters(candidate) == _count_parameters(vars(hint)["__call__"]) - 1
    )


def _count_parameters(function: types.FunctionType) -> int:
    return len(inspect.signature(function).parameters)
