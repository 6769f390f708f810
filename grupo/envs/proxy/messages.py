"""Messages of a chat request as the policy reads them: a role and a text.

A tool call of an earlier answer is text in the format in which the policy writes calls.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.types import Message
from grupo.envs.proxy.api_error import ApiError, invalid
from grupo.envs.proxy.tool_format import ApiToolCall, call_text
from grupo.util.errors import suggest

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
TEXT_PARTS = ("text", "input_text", "output_text")


def parse_messages(value: Any) -> tuple[Message, ...]:
    """The messages of a request, which end with one that the policy is to answer.

    Raises:
        ApiError: A message has an unknown role, or content that is no text.
    """
    if not isinstance(value, list) or not value:
        raise invalid("messages", value, "a list of one message or more")
    messages = tuple(_parse_message(f"messages[{i}]", item) for i, item in enumerate(value))
    if messages[-1]["role"] == "assistant":
        raise ApiError(
            "messages: the last one is the assistant's. Allowed: one of another role, which the"
            " policy answers.",
            param="messages",
        )
    return messages


def assistant_message(content: str, calls: Sequence[ApiToolCall]) -> Message:
    """An answer with tool calls as a message."""
    parts = [content.strip(), *map(call_text, calls)]
    return {"role": "assistant", "content": "\n".join(part for part in parts if part)}


def _parse_message(place: str, item: Any) -> Message:
    if not isinstance(item, Mapping):
        raise invalid(place, item, 'an object such as {"role": "user", "content": "…"}')
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise ApiError(f"{place}.role: {role!r}. {suggest(str(role), ROLES)}", param=place)
    content = _text(f"{place}.content", item.get("content"))
    if role != "assistant":
        return {"role": ROLES[role], "content": content}
    return assistant_message(content, _parse_calls(f"{place}.tool_calls", item.get("tool_calls")))


def _text(place: str, content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise invalid(place, content, "a text, or a list of parts with texts")
    return "".join(_part_text(f"{place}[{i}]", part) for i, part in enumerate(content))


def _part_text(place: str, part: Any) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind not in TEXT_PARTS:
        raise ApiError(f"{place}.type: {kind!r}. Allowed: text.", param=place)
    if not isinstance(part.get("text"), str):
        raise invalid(f"{place}.text", part.get("text"), "a text")
    return part["text"]


def _parse_calls(place: str, value: Any) -> list[ApiToolCall]:
    if not isinstance(value or [], list):
        raise invalid(place, value, "a list of tool calls")
    return [_parse_call(f"{place}[{i}]", item) for i, item in enumerate(value or [])]


def _parse_call(place: str, item: Any) -> ApiToolCall:
    function = item.get("function") if isinstance(item, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise invalid(place, item, '{"type": "function", "function": {"name": "…"}}')
    try:
        return ApiToolCall(function["name"], json.loads(function.get("arguments") or "{}"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ApiError(
            f"{place}.function.arguments: {error}. Allowed: JSON.", param=place
        ) from error
