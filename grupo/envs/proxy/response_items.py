"""The input of a request in the form of Responses, as messages.

Source: the types of the package openai 3.54, `openai.types.responses.response_input_param`.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from grupo.core.types import Message
from grupo.envs.proxy.api_error import ApiError, invalid, shown
from grupo.envs.proxy.messages import (
    MessageList,
    add_message,
    check_messages,
    parse_call,
    parse_text,
)
from grupo.envs.tools.formats import ToolCall
from grupo.util.errors import suggest

ITEM_TYPES = ("message", "function_call", "function_call_output")


def parse_items(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """The messages of a request's `instructions` and `input`.

    The calls after a message of the assistant belong to it, as those of one answer.

    Raises:
        ApiError: An item has an unknown type, or content that is no text.

    >>> parse_items({"instructions": "Be brief.", "input": "2 + 2?"})
    ({'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': '2 + 2?'})
    """
    instructions = body.get("instructions")
    if not isinstance(instructions, str | None):
        raise invalid("instructions", instructions, "a text")
    messages = MessageList()
    if instructions:
        messages.add({"role": "system", "content": instructions})
    value = body.get("input")
    items = [{"role": "user", "content": value}] if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise invalid("input", value, "a text, or a list of one item or more")
    places = ((f"input[{i}]", item) for i, item in enumerate(items))
    for kind, group in groupby(places, key=lambda pair: _kind(*pair)):
        if kind == "function_call":  # those of one answer
            messages.add_calls([_parse_call(*pair) for pair in group])
            continue
        for place, item in group:
            _add_item(messages, place, item)
    check_messages(messages.messages, "input")
    return tuple(messages.messages)


def _kind(place: str, item: Any) -> Any:
    """The type of an item."""
    if not isinstance(item, Mapping):
        raise invalid(place, item, 'an object such as {"role": "user", "content": "…"}')
    return item.get("type") or "message"


def _add_item(messages: MessageList, place: str, item: Mapping[str, Any]) -> None:
    """Append the message of an item that is no call."""
    match _kind(place, item):
        case "message":
            add_message(messages, place, item)
        case "function_call_output":
            output = parse_text(f"{place}.output", item.get("output"))
            messages.add_result(output, item.get("call_id"))
        case other:
            hint = suggest(str(other), ITEM_TYPES)
            raise ApiError(f"{place}.type: {shown(other)}. {hint}", param=place)


def _parse_call(place: str, item: Mapping[str, Any]) -> ToolCall:
    if not isinstance(item.get("name"), str):
        raise invalid(place, item, '{"type": "function_call", "call_id": "…", "name": "…"}')
    return parse_call(place, item, item.get("call_id"))
