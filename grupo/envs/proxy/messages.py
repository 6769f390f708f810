"""Messages of a request in the form that chat templates read."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.types import Message
from grupo.envs.proxy.api_error import ApiError, invalid, shown
from grupo.envs.tools.formats import ToolCall, valid_call_id
from grupo.util.errors import suggest
from grupo.util.json_text import has_more_values
from grupo.util.limits import REQUEST_VALUES

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
    messages = MessageList()
    for i, item in enumerate(value):
        add_message(messages, f"messages[{i}]", item)
    check_messages(messages.messages, "messages")
    return tuple(messages.messages)


class MessageList:
    """Messages of a request in order, and the names of the tools that they call."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tool_names: dict[str, str] = {}  # by the identifier of the call

    def add(self, message: Message) -> None:
        """Append a message."""
        self.messages.append(message)
        calls = message.get("tool_calls", ())
        self.tool_names |= {call["id"]: call["function"]["name"] for call in calls}

    def add_calls(self, calls: Sequence[ToolCall]) -> None:
        """Add tool calls to the last message, if it is an answer; else append one without text."""
        follows_text = bool(self.messages) and self.messages[-1]["role"] == "assistant"
        answer = self.messages.pop() if follows_text else assistant_message("", ())
        earlier = answer.get("tool_calls", ())
        self.add({**answer, "tool_calls": (*earlier, *map(_call_object, calls))})

    def add_result(self, content: str, call_id: object) -> None:
        """Append a result, with the name of the tool whose call has the identifier."""
        short_id = short_call_id(str(call_id))
        name = self.tool_names.get(short_id, "unknown")
        self.add({"role": "tool", "tool_call_id": short_id, "name": name, "content": content})


def add_message(messages: MessageList, place: str, item: Any) -> None:
    """Append a message of a request.

    Args:
        messages: The messages before it.
        place: Where it stands in the request, for error messages.
        item: The message in OpenAI's form.

    Raises:
        ApiError: It has an unknown role, or content that is no text.
    """
    if not isinstance(item, Mapping):
        raise invalid(place, item, 'an object such as {"role": "user", "content": "…"}')
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise ApiError(f"{place}.role: {shown(role)}. {suggest(str(role), ROLES)}", param=place)
    content = parse_text(f"{place}.content", item.get("content"))
    if role == "tool":
        messages.add_result(content, item.get("tool_call_id"))
    elif role == "assistant":
        calls = _parse_calls(f"{place}.tool_calls", item.get("tool_calls"))
        messages.add(assistant_message(content, calls))
    else:
        messages.add({"role": ROLES[role], "content": content})


def check_messages(messages: Sequence[Message], field: str) -> None:
    """Check all messages of a request together.

    Args:
        messages: The messages.
        field: Name of the field that holds them.

    Raises:
        ApiError: The last message is one that the policy cannot answer, or the arguments of their
            tool calls have too many values.
    """
    if messages[-1]["role"] == "assistant":
        raise ApiError(
            f"{field}: the last one is the assistant's. Allowed: one of another role, which the"
            " policy answers.",
            param=field,
        )
    arguments = [values for message in messages for _, values in calls_of(message)]
    if has_more_values(arguments, REQUEST_VALUES.maximum):
        raise ApiError(
            f"{field}: the arguments of their tool calls have too many values. Allowed:"
            f" {REQUEST_VALUES.allowed}.",
            param=field,
        )


def assistant_message(content: str, calls: Sequence[ToolCall]) -> Message:
    """An answer with tool calls as a message."""
    message: Message = {"role": "assistant", "content": content.strip()}
    return {**message, "tool_calls": tuple(map(_call_object, calls))} if calls else message


def _call_object(call: ToolCall) -> Mapping[str, Any]:
    """A tool call in a message, with its arguments as chat templates read them."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def calls_of(message: Message) -> list[tuple[str, Any]]:
    """Name and arguments of each tool call in a message of the assistant."""
    functions = (call["function"] for call in message.get("tool_calls", ()))
    return [(function["name"], function["arguments"]) for function in functions]


def short_call_id(text: str) -> str:
    """The identifier of a call in nine characters, as Mistral's template needs it.

    >>> short_call_id("VvvODy9mT"), len(short_call_id("call_7"))
    ('VvvODy9mT', 9)
    """
    return valid_call_id(text) or hashlib.sha256(text.encode()).hexdigest()[:9]


def parse_text(place: str, content: Any) -> str:
    """The text of a content, which is a text or a list of parts with texts; "" if there is none.

    Raises:
        ApiError: A part is no text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise invalid(place, content, "a text, or a list of parts with texts")
    return "".join(_part_text(f"{place}[{i}]", part) for i, part in enumerate(content))


def parse_call(place: str, function: Mapping[str, Any], call_id: object) -> ToolCall:
    """A tool call of an earlier answer.

    Args:
        place: Where its function stands in the request, for error messages.
        function: Its `name`, and its `arguments` as JSON.
        call_id: Its identifier, as the agent writes it.

    Raises:
        ApiError: The arguments are not JSON.
    """
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, ValueError, RecursionError) as error:
        raise ApiError(f"{place}.arguments: {error}. Allowed: JSON.", param=place) from error
    return ToolCall(0, 0, function["name"], arguments, call_id=short_call_id(str(call_id)))


def _part_text(place: str, part: Any) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind not in TEXT_PARTS:
        raise ApiError(f"{place}.type: {shown(kind)}. Allowed: text.", param=place)
    if not isinstance(part.get("text"), str):
        raise invalid(f"{place}.text", part.get("text"), "a text")
    return part["text"]


def _parse_calls(place: str, value: Any) -> list[ToolCall]:
    if not isinstance(value or [], list):
        raise invalid(place, value, "a list of tool calls")
    return [_parse_call_item(f"{place}[{i}]", item) for i, item in enumerate(value or [])]


def _parse_call_item(place: str, item: Any) -> ToolCall:
    function = item.get("function") if isinstance(item, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise invalid(place, item, '{"type": "function", "function": {"name": "…"}}')
    return parse_call(f"{place}.function", function, item.get("id"))
