"""The specification of a tool from its signature, and the errors of its calls."""

import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from grupo.core.field_types import coerce_number, matches_type
from grupo.util.errors import ConfigError, suggest

JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
Tool = Callable[..., object]


class ToolCallError(ValueError):
    """A call that cannot be run; its text is one line for the policy.

    Args:
        kind: "malformed", "unknown" or "arguments"; the reward term that counts the error.
        reason: What is wrong with the call.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {' '.join(reason.split())}")
        self.kind = kind


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the policy's prompt describes it.

    Args:
        name: The name that calls use.
        description: The tool's docstring.
        arguments: The type of each argument: str, int, float or bool.
        required: Names of the arguments without a default.
        function: The tool.
    """

    name: str
    description: str
    arguments: Mapping[str, type]
    required: frozenset[str]
    function: Tool

    def schema(self) -> str:
        """The function schema of chat templates: JSON on one line."""
        properties = {name: {"type": JSON_TYPES[kind]} for name, kind in self.arguments.items()}
        required = [name for name in self.arguments if name in self.required]
        parameters = {"type": "object", "properties": properties, "required": required}
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return json.dumps({"type": "function", "function": function})

    def validate_arguments(self, call_arguments: object) -> dict[str, Any]:
        """The arguments of a call, with numbers in their types.

        Raises:
            ToolCallError: An argument is unknown, missing or of another type.
        """
        if not isinstance(call_arguments, Mapping):
            shown = json.dumps(call_arguments)
            raise ToolCallError("arguments", f"{self.name} takes an object, not {shown}")
        for name in call_arguments:
            if name not in self.arguments:
                reason = f"{self.name} has no {name!r}. {self._suggestion(name)}"
                raise ToolCallError("arguments", reason)
        for name in self.arguments:
            if name in self.required and name not in call_arguments:
                reason = f"{self.name} lacks {name!r}. {self._suggestion('')}"
                raise ToolCallError("arguments", reason)
        return {
            name: self._validate_argument(name, value) for name, value in call_arguments.items()
        }

    def _validate_argument(self, name: str, value: object) -> object:
        kind = self.arguments[name]
        number = coerce_number(value, kind)
        if not matches_type(number, kind):
            shown = f"{name!r} of {self.name} is {json.dumps(value)[:80]}"
            raise ToolCallError("arguments", f"{shown}. Allowed: {JSON_TYPES[kind]}.")
        return number

    def _suggestion(self, name: str) -> str:
        return suggest(name, self.arguments)


class CallableTool(Protocol):
    """A tool that a session describes in the prompt, and whose calls it validates and runs."""

    @property
    def name(self) -> str:
        """The name that calls use."""
        ...

    @property
    def function(self) -> Tool:
        """Runs the call."""
        ...

    def schema(self) -> str:
        """The function schema of chat templates: JSON on one line."""
        ...

    def validate_arguments(self, call_arguments: object) -> dict[str, Any]:
        """The arguments of a call; raises `ToolCallError` if they do not fit."""
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """A source of several tools, such as an MCP server."""

    def tool_specs(self) -> Sequence[CallableTool]:
        """The tools."""
        ...


def tool_specs(tools: Sequence[Tool | ToolProvider]) -> dict[str, CallableTool]:
    """The specifications of functions, callable components and providers, by name.

    Raises:
        ConfigError: Two tools have the same name, or there is none.
    """
    specs: list[CallableTool] = []
    for tool in tools:
        specs += tool.tool_specs() if isinstance(tool, ToolProvider) else [tool_spec(tool)]
    names = [spec.name for spec in specs]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"tools: named {names}. Allowed: at least one, no name twice.")
    return dict(zip(names, specs, strict=True))


def tool_spec(tool: Tool) -> ToolSpec:
    """The specification of a function or callable component, from its signature and docstring.

    Raises:
        ConfigError: An argument has no type, or another one than str, int, float or bool.

    >>> def add(a: int, b: int = 1) -> int:
    ...     '''The sum of two numbers.'''
    ...     return a + b
    >>> tool_spec(add).validate_arguments({"a": 2})
    {'a': 2}
    """
    name = getattr(tool, "__name__", type(tool).__name__).lower()
    function = tool if inspect.isfunction(tool) else type(tool).__call__
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    hints = typing.get_type_hints(function)
    for p in parameters:
        if hints.get(p.name) not in JSON_TYPES:
            kinds = ", ".join(kind.__name__ for kind in JSON_TYPES)
            raise ConfigError(f"tools: argument {p.name!r} of {name} has no type of {kinds}.")
    description = inspect.getdoc(tool) or ""
    required = frozenset(p.name for p in parameters if p.default is p.empty)
    return ToolSpec(name, description, {p.name: hints[p.name] for p in parameters}, required, tool)
