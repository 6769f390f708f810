"""Calls of tools as a policy writes them, and what a tool must be for that."""

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grupo.core.errors import ConfigError, suggest
from grupo.core.serialization import coerce_number, matches_type

OPEN_TAG, CLOSE_TAG = "<tool_call>", "</tool_call>"
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
Tool = Callable[..., object]


class ToolCallError(ValueError):
    """A call that cannot be made: of which kind, and why in one line."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {' '.join(reason.split())}")
        self.kind = kind


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a policy is told of it."""

    name: str
    description: str
    arguments: Mapping[str, type]
    required: frozenset[str]
    function: Tool

    def schema(self) -> str:
        """How chat models are told of a function: JSON on one line."""
        properties = {name: {"type": JSON_TYPES[kind]} for name, kind in self.arguments.items()}
        required = [name for name in self.arguments if name in self.required]
        parameters = {"type": "object", "properties": properties, "required": required}
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return json.dumps({"type": "function", "function": function})

    def validate_arguments(self, call_arguments: object) -> dict[str, Any]:
        """The arguments of a call; raises `ToolCallError` for what does not fit."""
        if not isinstance(call_arguments, Mapping):
            raise ToolCallError(
                "arguments", f"{self.name} takes an object, not {json.dumps(call_arguments)}"
            )
        for name in call_arguments:
            if name not in self.arguments:
                raise ToolCallError(
                    "arguments", f"{self.name} has no {name!r}. {self._suggestion(name)}"
                )
        for name in self.arguments:
            if name in self.required and name not in call_arguments:
                raise ToolCallError(
                    "arguments", f"{self.name} lacks {name!r}. {self._suggestion('')}"
                )
        return {
            name: self._validate_argument(name, value) for name, value in call_arguments.items()
        }

    def _validate_argument(self, name: str, value: object) -> object:
        kind = self.arguments[name]
        if not matches_type(coerce_number(value, kind), kind):
            said = f"{name!r} of {self.name} is {json.dumps(value)[:80]}"
            raise ToolCallError("arguments", f"{said}. Allowed: {JSON_TYPES[kind]}.")
        return coerce_number(value, kind)

    def _suggestion(self, name: str) -> str:
        return suggest(name, self.arguments)


def tool_spec(tool: Tool) -> ToolSpec:
    """A function, or a piece that is called like one, as its signature and docstring say it is.

    >>> def add(a: int, b: int = 1) -> int:
    ...     '''The sum of two numbers.'''
    ...     return a + b
    >>> tool_spec(add).checked({"a": 2})
    {'a': 2}
    """
    name = getattr(tool, "__name__", type(tool).__name__).lower()
    called = tool if inspect.isfunction(tool) else type(tool).__call__
    parameters = [p for p in inspect.signature(called).parameters.values() if p.name != "self"]
    hints = typing.get_type_hints(called)
    for p in parameters:
        if hints.get(p.name) not in JSON_TYPES:
            kinds = ", ".join(kind.__name__ for kind in JSON_TYPES)
            raise ConfigError(f"tools: argument {p.name!r} of {name} has no type of {kinds}.")
    about = inspect.getdoc(tool) or ""
    needed = frozenset(p.name for p in parameters if p.default is p.empty)
    return ToolSpec(name, about, {p.name: hints[p.name] for p in parameters}, needed, tool)


def parse_calls(text: str) -> Iterator[tuple[str, object] | ToolCallError]:
    """Every call in a text, in order: a name and arguments, or what is wrong with it.

    >>> list(parse_calls('So: <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'))
    [('add', {'a': 2})]
    """
    for written in re.split(re.escape(OPEN_TAG), text)[1:]:
        inside, closed, _ = written.partition(CLOSE_TAG)
        yield (
            _parse_call(inside)
            if closed
            else ToolCallError("malformed", f"a call ends with {CLOSE_TAG}")
        )


def _parse_call(text: str) -> tuple[str, object] | ToolCallError:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError) as error:
        return ToolCallError("malformed", f"not JSON: {error}")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return ToolCallError("malformed", 'Allowed: {"name": ..., "arguments": {...}}')
    return call["name"], call.get("arguments", {})
