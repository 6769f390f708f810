"""Values of fields from the data of a recipe file: scalars, text, arrays and tables."""

import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Any

from grupo.config.overrides import suggest_field
from grupo.config.parse_value import parse_value
from grupo.config.recipe_files.types import accepts_functions, default_type, find_type, members
from grupo.core.component import component_fields, is_component
from grupo.core.field_types import coerce_number, describe_type, is_checkable, matches_type
from grupo.core.protocols import available_components
from grupo.rewards import Reward, load_reward
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_object
from grupo.util.loader_errors import loader_errors

TYPE_KEY = "type"  # the key of a table that names its component
ADDRESS = re.compile(r"[^\s():]+:[A-Za-z_][\w.]*")
CALL = re.compile(r"\w+\(.*\)", re.DOTALL)


def value_from_data(data: Any, hint: Any, field: str, current: Any = None) -> Any:
    """The value of a field.

    Args:
        data: A scalar, text, an array or a table of the file.
        hint: Type of the field.
        field: Dotted name of the field, for error messages.
        current: The component whose fields a table without `type` changes.

    >>> from grupo.inference.sampling_params import Sampling
    >>> value_from_data({"top_k": 5}, Sampling, "sampling", Sampling(0.5))
    Sampling(temperature=0.5, top_p=1.0, top_k=5, min_p=0.0)
    >>> from grupo.core.schedules import Schedule
    >>> value_from_data("Cosine(1e-5, 0)", float | Schedule, "learning_rate")
    Cosine(start=1e-05, end=0.0)
    """
    if isinstance(data, Mapping) and any(typing.get_origin(m) is Mapping for m in members(hint)):
        return _plain_value(data)
    if isinstance(data, Mapping):
        return component_from_table(data, hint, field, current)
    if isinstance(data, str):
        return _from_text(data, hint, field)
    if isinstance(data, list):
        return _from_array(data, hint, field)
    return _checked(coerce_number(data, hint), hint, field, data)


def _plain_value(data: Any) -> Any:
    """Data of a file without components; arrays become tuples, which recipe.json holds."""
    if isinstance(data, Mapping):
        return {name: _plain_value(value) for name, value in data.items()}
    return tuple(map(_plain_value, data)) if isinstance(data, list) else data


def component_from_table(
    table: Mapping[str, Any], hint: Any, field: str, current: Any = None
) -> Any:
    """The component of a table: of the class `type`, or the present one with other fields."""
    if TYPE_KEY in table:
        cls = find_type(table[TYPE_KEY], hint, field)
        base = None
    else:
        cls = default_type(hint, current)
        base = current if is_component(current) else None
    if cls is None:
        raise ConfigError(f"{field}: a table does not fit. Allowed: {describe_type(hint)}.")
    values = {name: value for name, value in table.items() if name != TYPE_KEY}
    result = make_component(cls, values, field, base)
    return _checked(result, hint, field, table.get(TYPE_KEY, result))


def make_component(cls: type, table: Mapping[str, Any], field: str, base: Any = None) -> Any:
    """A component of a class from the data of its fields.

    Args:
        cls: The class.
        table: Data of the fields by name.
        field: Dotted name of the component; "" for a recipe.
        base: A component whose other fields are kept. Default: the defaults of the class.
    """
    known = {f.name: f for f in fields(cls) if f.init}
    prefix = f"{field}." if field else ""
    hints = typing.get_type_hints(cls, include_extras=True)
    values = {}
    for name, data in table.items():
        if name not in known:
            hint = suggest_field(name, base) if base else suggest(name, known)
            raise ConfigError(f"{prefix}{name}: {cls.__name__} has no field {name!r}. {hint}")
        current = component_fields(base)[name] if base else _default(known[name])
        values[name] = value_from_data(data, hints[name], f"{prefix}{name}", current)
    if base:
        return with_place(lambda: replace(base, **values), cls, field)
    for name, f in known.items():
        if name not in values and f.default is f.default_factory is MISSING:
            signature = f"{cls.__name__}({', '.join(known)})"
            raise ConfigError(f"{prefix}{name}: it is missing. Allowed: {signature}.")
    return with_place(lambda: cls(**values), cls, field)


def with_place(make: Callable[[], Any], cls: type, field: str) -> Any:
    """The result of `make`; errors of the component's own checks begin with its dotted field."""
    try:
        with loader_errors(cls.__name__):
            return make()
    except ConfigError as error:
        message = str(error)
        own = f"{cls.__name__}."
        if message.startswith(own):
            place = f"{field}." if field else ""
            raise ConfigError(f"{place}{message.removeprefix(own)}") from error
        raise ConfigError(f"{field}: {message}" if field else message) from error


def _default(field: "Field[Any]") -> Any:
    return field.default if field.default is not MISSING else None


def _from_text(text: str, hint: Any, field: str) -> Any:
    """Text: a string, a path, a function's address, or a component as the code that makes it."""
    kinds = list(members(hint))
    functions = available_components(hint)
    is_code = text in functions or (functions and CALL.fullmatch(text))
    if not is_code and (Any in kinds or matches_type(text, hint)):
        return text
    if Path in kinds:
        return Path(text)
    if text not in functions and ADDRESS.fullmatch(text) and accepts_functions(hint):
        with loader_errors(field):
            value = load_reward(text) if Reward in kinds else import_object(text)
        return _checked(value, hint, field, text)
    return parse_value(text, hint, field)


def _from_array(items: list[Any], hint: Any, field: str) -> Any:
    kinds = [kind for kind in members(hint) if typing.get_origin(kind) is tuple]
    if not kinds and Any in members(hint):
        kinds = [tuple[Any, ...]]
    if not kinds:
        raise ConfigError(f"{field}: {items!r} does not fit. Allowed: {describe_type(hint)}.")
    arguments = typing.get_args(kinds[0])
    hints = arguments[:1] * len(items) if arguments[-1:] == (...,) else arguments
    if len(hints) != len(items):
        raise ConfigError(
            f"{field}: {items!r} does not fit. Allowed: an array of {len(hints)} values."
        )
    places = [f"{field}[{i}]" for i in range(len(items))]
    return tuple(map(value_from_data, items, hints, places))


def _checked(value: Any, hint: Any, field: str, data: Any) -> Any:
    """The value; raises if its type does not fit."""
    if is_checkable(hint) and not matches_type(value, hint):
        raise ConfigError(f"{field}: {data!r} does not fit. Allowed: {describe_type(hint)}.")
    return value
