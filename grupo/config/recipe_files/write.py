"""A recipe as a TOML file, from which `load_recipe_file` makes an equal recipe."""

import unicodedata
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import tomli_w

from grupo.config.parse_value import parse_value
from grupo.config.recipe_files.types import members, portable_address, type_name
from grupo.config.recipe_files.values import TYPE_KEY
from grupo.core.component import component_fields, is_component, to_code
from grupo.method import Method
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError

CODE_LENGTH = 72  # characters of a component that is written as one line of code
TABLES = ("policy", "env", "tasks", "eval_tasks", "method", "evaluation", "early_stopping")


def recipe_to_toml(recipe: Recipe) -> str:
    """The whole recipe as TOML, every field that is not None included.

    Raises:
        ConfigError: A value has no notation in a file, such as a function without an address.
    """
    hints = get_type_hints(Recipe, include_extras=True)
    data = {
        name: _table(value, hints[name], name)
        if name in TABLES and is_component(value)
        else _data(value, hints[name], name)
        for name, value in component_fields(recipe).items()
    }
    return "".join(map(_escape, tomli_w.dumps(data)))


def method_to_data(method: Method) -> dict[str, Any]:
    """The table [method] of a recipe: the slots that differ from those of `Method()`.

    Raises:
        ConfigError: A component has no notation in a file.

    >>> from grupo.algo.losses import Clip
    >>> from grupo.algo.ratios import sequence
    >>> method_to_data(Method(loss=Clip(0.2, 0.3, sequence)))["loss"]["ratio"]
    'grupo.algo.ratios:sequence'
    """
    hints = get_type_hints(Method, include_extras=True)
    standard = component_fields(Method())
    return {
        name: _data(value, hints[name], f"method.{name}")
        for name, value in component_fields(method).items()
        if value != standard[name]
    }


def _data(value: Any, hint: Any, field: str) -> Any:
    """The data of a value: a scalar, a string, an array or a table."""
    if is_component(value):
        return _code(value, hint, field) or _table(value, hint, field)
    if isinstance(value, bool | int | float | str):
        return value
    if value is None:
        return "None"
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        hints = _item_hints(hint, len(value))
        places = [f"{field}[{i}]" for i in range(len(value))]
        return list(map(_data, value, hints, places))
    if isinstance(value, dict):
        return {name: _data(x, Any, f"{field}.{name}") for name, x in value.items()}
    if callable(value):
        return _code(value, hint, field) or portable_address(value, field)
    raise ConfigError(
        f"{field}: {value!r} is a {type(value).__name__}, which a recipe file cannot hold."
        " Allowed: numbers, strings, tuples, mappings, paths, components, functions."
    )


def _table(value: Any, hint: Any, field: str) -> dict[str, Any]:
    """A component as a table: its class, and its fields without those that are None by default."""
    values = component_fields(value)
    if TYPE_KEY in values:
        raise ConfigError(f"{field}.{TYPE_KEY}: this field name is reserved. Rename the field.")
    hints = get_type_hints(type(value), include_extras=True)
    defaults = {f.name: f.default for f in fields(value)}
    given = {name: x for name, x in values.items() if x is not None or defaults[name] is not None}
    is_only_type = list(members(hint)) == [type(value)]
    return {
        **({} if is_only_type else {TYPE_KEY: type_name(value, hint, field)}),
        **{name: _data(x, hints[name], f"{field}.{name}") for name, x in given.items()},
    }


def _code(value: Any, hint: Any, field: str) -> str:
    """The code that makes a value if it is short and parses to an equal value, otherwise ""."""
    code = to_code(value).rpartition(".")[2] if callable(value) and not is_component(value) else ""
    code = code or to_code(value)
    try:
        is_equal = parse_value(code, hint, field) == value
    except ConfigError:
        return ""
    return code if is_equal and len(code) <= CODE_LENGTH else ""


def _item_hints(hint: Any, count: int) -> list[Any]:
    """The type of each entry of a tuple."""
    arguments = next((get_args(m) for m in members(hint) if get_origin(m) is tuple), (Any, ...))
    return list(arguments[:1] * count if arguments[-1:] == (...,) else arguments)


def _escape(char: str) -> str:
    """A character of the file; a terminal and an editor would act on raw control characters."""
    is_control = char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")
    return f"\\U{ord(char):08X}" if is_control else char
