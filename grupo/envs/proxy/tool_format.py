"""Tool calls in the policy's text: the format of Hermes and Qwen."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grupo.envs.tools.formats.hermes import CLOSE_TAG, HERMES, OPEN_TAG, parse_hermes


class ApiToolCall(NamedTuple):
    """A call of a tool: its name, and its arguments as JSON."""

    name: str
    arguments: Any


def split_calls(text: str) -> tuple[str, tuple[ApiToolCall, ...]]:
    """The text before the first tool call of an answer, and its calls.

    An answer with a malformed call is a text without calls, so that nothing of it is lost.

    >>> split_calls('So: <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>')
    ('So:', (ApiToolCall(name='add', arguments={'a': 2}),))
    """
    calls = list(parse_hermes(text))
    if not calls or any(call.error for call in calls):
        return text, ()
    parsed = tuple(ApiToolCall(call.name, call.arguments) for call in calls)
    return text[: calls[0].start].strip(), parsed


def call_text(call: ApiToolCall) -> str:
    """A call as the policy writes it."""
    value = {"name": call.name, "arguments": call.arguments}
    return f"{OPEN_TAG}{json.dumps(value, sort_keys=True)}{CLOSE_TAG}"


def describe_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """A description of tools for prompts whose chat template describes none; "" without tools."""
    return HERMES.prompt.format(tools="\n".join(map(json.dumps, tools))) if tools else ""
