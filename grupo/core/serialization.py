"""Components as JSON and back, for `recipe.json` in a run's folder."""

import math
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from grupo.core.component import component_fields, is_component, to_code
from grupo.core.field_types import coerce_number, describe_type, is_checkable, matches_type
from grupo.core.non_json import OnNonJson, missing_object, refuse
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import address_of, import_object
from grupo.util.in_memory import InMemory, MissingObject
from grupo.util.json_text import check_depth
from grupo.util.loader_errors import loader_errors

_JSON_SCALARS = str | int | float | bool | None
_PLAIN_DATA = list | dict | set | frozenset | bytes | bytearray | complex  # tuples can be written


def to_data(value: Any, path: str = "recipe", on_non_json: OnNonJson = refuse) -> Any:
    """A component as JSON data, with classes and functions by their address.

    Args:
        value: The component, or a value of one of its fields.
        path: Place of the value in the recipe, for error messages.
        on_non_json: Decides about an object that exists only in this process, such as a lambda:
            `refuse` raises, `describe_non_json` writes its description.

    Raises:
        ConfigError: The value cannot be written, as a list or NaN.

    >>> from grupo.algo.losses import KL
    >>> to_data(KL())["estimator"]
    {'function': 'grupo.algo.divergences:k3'}
    """
    if isinstance(value, float) and math.isnan(value) and not is_component(value):
        raise ConfigError(f"{path}: nan. Allowed: a number.")
    if isinstance(value, float) and math.isinf(value) and not is_component(value):
        return {"infinity": math.copysign(1.0, value)}  # JSON has no infinity
    if isinstance(value, _JSON_SCALARS) and not is_component(value):
        return value
    if isinstance(value, tuple):
        return {"tuple": [to_data(v, f"{path}[{i}]", on_non_json) for i, v in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        items = value.items()
        return {"mapping": {k: to_data(v, f"{path}[{k!r}]", on_non_json) for k, v in items}}
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, _PLAIN_DATA):
        raise _non_json(value, path)
    try:
        address = _address(value, path)
    except ConfigError as error:
        return on_non_json(value, path, error)
    if not is_component(value):
        return {"function": address}
    data = {
        name: to_data(v, f"{path}.{name}", on_non_json)
        for name, v in component_fields(value).items()
    }
    if "component" in data:
        raise ConfigError(f"{path}.component: this field name is reserved. Rename the field.")
    return {"component": address, **data}


def objects_in_memory(value: Any, path: str = "recipe") -> dict[str, MissingObject]:
    """The objects of a recipe that exist only in this process, by their place in it."""
    objects: dict[str, MissingObject] = {}

    def collect(value: object, path: str, error: ConfigError) -> None:
        objects[path] = missing_object(value)

    to_data(value, path, collect)
    return objects


def holds_descriptions(data: Any) -> bool:
    """True if JSON data of a recipe describes an object that was in memory.

    >>> holds_descriptions({"tuple": [{"in_memory": "lambda in a.py, line 3", "remedy": ""}]})
    True
    """
    if isinstance(data, Mapping):
        is_description = "in_memory" in data and "component" not in data
        return is_description or any(map(holds_descriptions, data.values()))
    return isinstance(data, list) and any(map(holds_descriptions, data))


def _address(value: Any, path: str) -> str:
    """The address of a component's class or of a function; raises if recipe.json cannot hold it."""
    if isinstance(value, InMemory):
        raise ConfigError(f"{path}: {value.description} exists only in memory: {value.remedy}.")
    if is_component(value):
        return address_of(type(value), path)
    if callable(value):
        return address_of(value, path)
    raise _non_json(value, path)


def _non_json(value: object, path: str) -> ConfigError:
    return ConfigError(
        f"{path}: {value!r} is a {type(value).__name__}, which recipe.json cannot hold."
        " Allowed: numbers, strings, tuples, mappings, paths, components, functions."
    )


def from_data(data: Any) -> Any:
    """The value that `to_data` wrote. It calls no object named in the data but components.

    An object that was in memory is a `MissingObject`.

    Raises:
        ConfigError: `to_data` did not write this, or a component does not accept its fields.
    """
    try:
        check_depth(data)
    except ValueError as error:
        raise ConfigError(f"A recipe is {error}.") from error
    return _value(data)


def _value(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return _scalar(data)
    if "component" in data:  # first, because a component may have fields of the names below
        arguments = {name: value for name, value in data.items() if name != "component"}
        return _build_component(import_object(data["component"]), arguments)
    if "tuple" in data:
        return tuple(map(_value, _typed(data["tuple"], list)))
    if "mapping" in data:
        return {name: _value(x) for name, x in _typed(data["mapping"], dict).items()}
    if "infinity" in data:
        return math.copysign(math.inf, _typed(data["infinity"], float))
    if "path" in data:
        return Path(_typed(data["path"], str))
    if "function" in data:
        return import_object(data["function"])
    if "in_memory" in data:
        return MissingObject(_typed(data["in_memory"], str), _typed(data.get("remedy"), str))
    raise ConfigError(f"{str(data)[:80]} is not a value of a recipe.")


def _scalar(value: Any) -> Any:
    if not isinstance(value, _JSON_SCALARS):
        raise ConfigError(f"{str(value)[:80]} is not a value of a recipe.")
    return value


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ConfigError(f"{str(value)[:80]!r} in a recipe. Allowed: a {kind.__name__}.")
    return value


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
    values = {name: _value(value) for name, value in arguments.items()}
    with loader_errors(cls.__name__):
        _check_fields_without_name(cls, values)
        return cls(**values)


def _check_fields_without_name(cls: type, values: Mapping[str, Any]) -> None:
    """Raise for a field whose type no message can describe, such as a protocol.

    The component itself checks the other fields.
    """
    hints = typing.get_type_hints(cls)
    for name, value in values.items():
        if is_checkable(hints[name]) and not matches_type(
            coerce_number(value, hints[name]), hints[name]
        ):
            allowed = getattr(hints[name], "__name__", None) or describe_type(hints[name])
            raise ConfigError(f"{cls.__name__}.{name}: {to_code(value)}. Allowed: {allowed}.")
