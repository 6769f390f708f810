"""Names of components in a recipe file: short for the library's own, addresses for others."""

import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from grupo.core.component import is_component
from grupo.core.protocols import available_components, is_protocol, protocol_methods
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import address_of, import_object

# modules whose components have short names in every field that they fit
MODULES = (
    "grupo.core.schedules",
    "grupo.core.controllers",
    "grupo.envs",
    "grupo.envs.image_generation",
    "grupo.envs.games",
    "grupo.envs.tools",
    "grupo.inference.vllm",
    "grupo.models.causal_lm",
    "grupo.models.flow",
    "grupo.models.lora",
    "grupo.models.masked_diffusion",
    "grupo.models.multi_policy_spec",
    "grupo.models.soft_thinking_lm",
    "grupo.ray_workers",
    "grupo.rewards",
    "grupo.rollouts.turns",
    "grupo.tasks",
)


def members(hint: Any) -> Iterator[Any]:
    """The types that a type consists of, without annotations.

    >>> list(members(Annotated[int, "a remark"] | None))
    [<class 'int'>, <class 'NoneType'>]
    """
    if typing.get_origin(hint) is Annotated:
        yield from members(typing.get_args(hint)[0])
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for member in typing.get_args(hint):
            yield from members(member)
    else:
        yield hint


def accepts_functions(hint: Any) -> bool:
    """True if a value of a type may be a function."""
    return any(
        member is Any
        or typing.get_origin(member) is Callable
        or (is_protocol(member) and protocol_methods(member) == {"__call__"})
        for member in members(hint)
    )


def find_type(name: str, hint: Any, field: str) -> type:
    """The class of components that a recipe file calls `name`.

    Args:
        name: A short name, `module:Class` or `file.py:Class`.
        hint: Type of the field.
        field: Place of the name, for error messages.
    """
    if not isinstance(name, str):
        raise ConfigError(f"{field}.type: {name!r} does not fit. Allowed: a string.")
    if ":" in name:
        try:
            cls = import_object(name)
        except ConfigError as error:
            raise ConfigError(f"{field}.type: {error}") from error
    else:
        known = short_names(hint)
        if name not in known:
            hint_text = suggest(name, known)
            raise ConfigError(f"{field}.type: {name!r} cannot be used here. {hint_text}")
        cls = known[name]
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise ConfigError(f"{field}.type: {name!r} is no component. Allowed: a component's class.")
    return cls


def type_name(component: Any, hint: Any, field: str) -> str:
    """The name of a component's class in a recipe file; raises if it has no address."""
    cls = type(component)
    is_short = short_names(hint).get(cls.__name__) is cls
    return cls.__name__ if is_short else portable_address(cls, field)


def portable_address(obj: Any, field: str) -> str:
    """The address of a function or class, relative to the working folder if it lies below it."""
    location, _, name = address_of(obj, field).rpartition(":")
    if location.endswith(".py") and Path(location).is_relative_to(Path.cwd()):
        location = str(Path(location).relative_to(Path.cwd()))
    return f"{location}:{name}"


@cache
def short_names(hint: Any) -> dict[str, type]:
    """The library's components that fit a type, by name."""
    known: dict[str, type] = {}
    for module in MODULES:
        for name, value in vars(import_module(module)).items():
            is_class = isinstance(value, type) and is_dataclass(value)
            if is_class and value.__module__.startswith("grupo.") and _fits(value, hint):
                known[name] = value
    for member in members(hint):
        available = available_components(member)
        known |= {name: value for name, value in available.items() if isinstance(value, type)}
    return known


def _fits(cls: type, hint: Any) -> bool:
    """True if components of a class are values of a type."""
    for member in members(hint):
        if typing.get_origin(member) is Callable and "__call__" in dir(cls):
            return True
        if is_protocol(member) and protocol_methods(member) <= set(dir(cls)):
            return True
        if isinstance(member, type) and not is_protocol(member) and issubclass(cls, member):
            return True
    return False


def default_type(hint: Any, current: Any) -> type | None:
    """The class of a table without `type`: of the present value, or the only one of the field."""
    if is_component(current):
        return type(current)
    classes = [m for m in members(hint) if isinstance(m, type) and is_dataclass(m)]
    return classes[0] if len(classes) == 1 else None
