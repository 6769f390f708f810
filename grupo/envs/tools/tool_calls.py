"""Calls of tools as a policy writes them, and what a tool must be for that."""

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grupo.core.errors import Refused, nearest
from grupo.core.serialization import cast, fits

OPEN, CLOSE = "<tool_call>", "</tool_call>"
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}
Tool = Callable[..., object]


class Mistake(ValueError):
    """A call that cannot be made: of which kind, and why in one line."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"{kind}: {' '.join(why.split())}")
        self.kind = kind


@dataclass(frozen=True)
class Declared:
    """A tool as a policy is told of it."""

    name: str
    about: str
    arguments: Mapping[str, type]
    needed: frozenset[str]
    tool: Tool

    def schema(self) -> str:
        """How chat models are told of a function: JSON on one line."""
        properties = {name: {"type": KINDS[kind]} for name, kind in self.arguments.items()}
        required = [name for name in self.arguments if name in self.needed]
        parameters = {"type": "object", "properties": properties, "required": required}
        function = {"name": self.name, "description": self.about, "parameters": parameters}
        return json.dumps({"type": "function", "function": function})

    def checked(self, given: object) -> dict[str, Any]:
        """The arguments of a call; raises `Mistake` for what does not fit."""
        if not isinstance(given, Mapping):
            raise Mistake("arguments", f"{self.name} takes an object, not {json.dumps(given)}")
        for name in given:
            if name not in self.arguments:
                raise Mistake("arguments", f"{self.name} has no {name!r}. {self._allowed(name)}")
        for name in self.arguments:
            if name in self.needed and name not in given:
                raise Mistake("arguments", f"{self.name} lacks {name!r}. {self._allowed('')}")
        return {name: self._checked(name, value) for name, value in given.items()}

    def _checked(self, name: str, value: object) -> object:
        kind = self.arguments[name]
        if not fits(cast(value, kind), kind):
            said = f"{name!r} of {self.name} is {json.dumps(value)[:80]}"
            raise Mistake("arguments", f"{said}. Allowed: {KINDS[kind]}.")
        return cast(value, kind)

    def _allowed(self, name: str) -> str:
        return nearest(name, self.arguments)


def declared(tool: Tool) -> Declared:
    """A function, or a piece that is called like one, as its signature and docstring say it is.

    >>> def add(a: int, b: int = 1) -> int:
    ...     '''The sum of two numbers.'''
    ...     return a + b
    >>> declared(add).checked({"a": 2})
    {'a': 2}
    """
    name = getattr(tool, "__name__", type(tool).__name__).lower()
    called = tool if inspect.isfunction(tool) else type(tool).__call__
    parameters = [p for p in inspect.signature(called).parameters.values() if p.name != "self"]
    hints = typing.get_type_hints(called)
    for p in parameters:
        if hints.get(p.name) not in KINDS:
            kinds = ", ".join(kind.__name__ for kind in KINDS)
            raise Refused(f"tools: argument {p.name!r} of {name} has no type of {kinds}.")
    about = inspect.getdoc(tool) or ""
    needed = frozenset(p.name for p in parameters if p.default is p.empty)
    return Declared(name, about, {p.name: hints[p.name] for p in parameters}, needed, tool)


def calls(text: str) -> Iterator[tuple[str, object] | Mistake]:
    """Every call in a text, in order: a name and arguments, or what is wrong with it.

    >>> list(calls('So: <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'))
    [('add', {'a': 2})]
    """
    for written in re.split(re.escape(OPEN), text)[1:]:
        inside, closed, _ = written.partition(CLOSE)
        yield _call(inside) if closed else Mistake("malformed", f"a call ends with {CLOSE}")


def _call(inside: str) -> tuple[str, object] | Mistake:
    try:
        call = json.loads(inside)
    except (ValueError, RecursionError) as error:
        return Mistake("malformed", f"not JSON: {error}")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return Mistake("malformed", 'Allowed: {"name": ..., "arguments": {...}}')
    return call["name"], call.get("arguments", {})
