"""The column of a task's own arguments for the chat template, as ms-swift and TRL read it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from grupo.core.template_options import TEMPLATE_KWARGS
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json


def template_kwargs(row: Mapping[str, Any], location: str) -> Mapping[str, Any]:
    """The arguments of a row: a mapping or its JSON text; none if the column is missing or empty.

    Tables of columns give every row the names of all, with None where it has none: these are left
    out.

    Args:
        row: Values by column.
        location: Names the row in error messages.

    Raises:
        ConfigError: The value is no mapping of names.

    >>> template_kwargs({"chat_template_kwargs": '{"enable_thinking": false}'}, "row 1")
    {'enable_thinking': False}
    """
    value = row.get(TEMPLATE_KWARGS)
    if isinstance(value, str) and value.strip():
        with suppress(ValueError):  # the text is refused below
            value = parse_json(value)
    value = value or {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigError(
            f"{location}, column {TEMPLATE_KWARGS!r} is {str(value)[:100]!r}. Allowed: arguments"
            ' by name, such as {"enable_thinking": false}. Mend the row, or remove it.'
        )
    return {name: x for name, x in value.items() if x is not None}
