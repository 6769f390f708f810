"""Components as JSON and back, for `recipe.json` in a run's folder."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from grupo.core.component import component_fields, is_component
from grupo.core.errors import ConfigError, suggest
from grupo.core.importing import address_of, import_object

_JSON_SCALARS = str | int | float | bool | None


def to_data(value: Any, path: str = "recipe") -> Any:
    """A component as JSON data, with classes and functions by their address.

    Args:
        value: The component, or a value of one of its fields.
        path: Place of the value in the recipe, for error messages.

    Raises:
        ConfigError: The value cannot be written, as a lambda, a list or NaN.

    >>> from grupo.algo.losses import KL
    >>> to_data(KL())["estimator"]
    {'function': 'grupo.algo.divergences:k3'}
    """
    if isinstance(value, float) and math.isnan(value) and not is_component(value):
        raise ConfigError(f"{path}: nan. Allowed: a number.")
    if isinstance(value, _JSON_SCALARS) and not is_component(value):
        return value
    if isinstance(value, tuple):
        return {"tuple": [to_data(v, f"{path}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, Path):
        return {"path": str(value)}
    if is_component(value):
        data = {name: to_data(v, f"{path}.{name}") for name, v in component_fields(value).items()}
        if "component" in data:
            raise ConfigError(f"{path}.component: this field name is reserved. Rename the field.")
        return {"component": address_of(type(value), path), **data}
    if callable(value):
        return {"function": address_of(value, path)}
    raise ConfigError(
        f"{path}: {value!r} is a {type(value).__name__}, which recipe.json cannot hold."
        " Allowed: numbers, strings, tuples, paths, components, functions."
    )


def from_data(data: Any) -> Any:
    """The value that `to_data` wrote. It calls no object named in the data but components."""
    if not isinstance(data, Mapping):
        return data
    if "component" in data:  # first, because a component may have fields of the names below
        arguments = {name: value for name, value in data.items() if name != "component"}
        return _build_component(import_object(data["component"]), arguments)
    if "tuple" in data:
        return tuple(from_data(v) for v in data["tuple"])
    if "path" in data:
        return Path(data["path"])
    if "function" in data:
        return import_object(data["function"])
    raise ConfigError(f"{str(data)[:80]} is not a value of a recipe.")


def _build_component(cls: Any, arguments: Mapping[str, Any]) -> Any:
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise ConfigError(f"{cls!r} is not a component; a recipe holds no other objects.")
    known = {f.name: f for f in fields(cls) if f.init}
    for name in arguments:
        if name not in known:
            raise ConfigError(f"{cls.__name__} has no field {name!r}. {suggest(name, known)}")
    for name, field in known.items():
        if name not in arguments and field.default is field.default_factory is MISSING:
            raise ConfigError(f"{cls.__name__} lacks its field {name!r}.")
    return cls(**{name: from_data(value) for name, value in arguments.items()})
