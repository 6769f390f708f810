"""Calls whose arguments are pairs of a name and a text, without types.

A text becomes a number, a truth value, an object or a list by the schema of the tool: Qwen3-Coder
and GLM write the text "5" and the number 5 in the same way.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grupo.envs.tools.formats.call import ToolCall, json_value

PYTHON_WORDS = {"True": True, "False": False, "None": None}  # as Qwen3-Coder's template has them
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"} | {
    type(None): "null", list: "array", dict: "object"
}  # fmt: skip


@dataclass(frozen=True)
class TextCallForm:
    """How a family of models marks the name and the arguments of a call.

    Args:
        head: The beginning of a call; its group `name` is the tool.
        argument: An argument; its groups are `name` and `value`.
        end: The end of a call.
        allowed: An example, for the message about a call that has another form.
    """

    head: re.Pattern[str]
    argument: re.Pattern[str]
    end: re.Pattern[str]
    allowed: str

    def read(self, text: str, start: int, limit: int) -> ToolCall:
        """The call that begins at a place of a text and ends before another one.

        Args:
            text: The text.
            start: The first character of the call.
            limit: The place at which the next call begins, or the text ends.
        """
        head = self.head.match(text, start, limit)
        if not head:
            return ToolCall(start, limit, error=f"Allowed: {self.allowed}")
        arguments: dict[str, str] = {}
        place = head.end()
        while argument := self.argument.match(text, place, limit):
            if argument["name"] in arguments:
                error = f"the argument {argument['name']!r} is given twice"
                return ToolCall(start, limit, head["name"], error=error)
            arguments[argument["name"]] = argument["value"]
            place = argument.end()
        end = self.end.match(text, place, limit)
        if not end:
            rest = text[place : min(limit, place + 200)].strip()[:40]
            error = f"{rest!r} is no argument and no end of a call. Allowed: {self.allowed}"
            return ToolCall(start, limit, head["name"], error=error)
        return ToolCall(start, end.end(), head["name"], arguments)


def argument_text(value: object) -> str:
    """The text of an argument: a string as it is, any other value as JSON.

    >>> argument_text("5"), argument_text(5), argument_text([True])
    ('5', '5', '[true]')
    """
    return value if isinstance(value, str) else json.dumps(value)


def typed_arguments(arguments: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with values in the types that a tool's schema names.

    A text becomes the JSON value that it is, if the schema allows a value of this type and not only
    a text. Any other text stays as it is, and the validation of the arguments rejects it.

    Args:
        arguments: Texts by name.
        schema: The function schema of the tool, as chat templates read it.

    >>> properties = {"a": {"type": "integer"}, "b": {"type": "string"}}
    >>> schema = {"function": {"parameters": {"properties": properties}}}
    >>> typed_arguments({"a": "2", "b": "2"}, schema)
    {'a': 2, 'b': '2'}
    """
    properties = _properties(schema)
    return {name: _typed(text, properties.get(name, {})) for name, text in arguments.items()}


def _properties(schema: object) -> Mapping[str, Any]:
    """The schemas of the arguments in a function schema; empty if it has none."""
    for key in ("function", "parameters", "properties"):
        schema = schema.get(key) if isinstance(schema, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def _typed(text: str, schema: object) -> Any:
    allowed = _types(schema)
    if allowed == {"string"}:
        return text
    try:
        word = text.strip()
        value = PYTHON_WORDS[word] if word in PYTHON_WORDS else json_value(word)
    except ValueError:
        return text
    fits = not allowed or bool(_types_of_value(value) & allowed)
    return value if fits and not isinstance(value, str) else text


def _types(schema: object) -> set[str]:
    """The names of the types that a part of a schema allows; empty if it allows any."""
    types: set[str] = set()
    parts = [schema]
    while parts:
        part = parts.pop()
        if not isinstance(part, Mapping):
            return set()
        branches = part.get("anyOf", part.get("oneOf"))
        values = part.get("enum", [part["const"]] if "const" in part else None)
        match part.get("type"):
            case str() as name:
                types.add(name)
            case [*names]:
                types.update(map(str, names))
            case _ if isinstance(branches, list):
                parts += branches
            case _ if isinstance(values, list):
                types.update(*map(_types_of_value, values))
            case _:
                return set()
    return types


def _types_of_value(value: Any) -> set[str]:
    """The types of JSON Schema that a value has: a whole number is also a number."""
    names = {JSON_TYPES[type(value)]}
    if "integer" in names or (isinstance(value, float) and value.is_integer()):
        names |= {"integer", "number"}
    return names
