"""The input of a request in the form of Responses, as messages.

Source: the types of the package openai 3.54, `openai.types.responses.response_input_param`.
"""

from collections.abc import Mapping
from typing import Any

from grupo.core.types import Message
from grupo.envs.proxy.api_error import ApiError, invalid
from grupo.envs.proxy.messages import (
    assistant_message,
    call_object,
    check_last_message,
    parse_call,
    parse_message,
    parse_text,
    result_message,
)
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
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    value = body.get("input")
    items = [{"role": "user", "content": value}] if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise invalid("input", value, "a text, or a list of one item or more")
    for i, item in enumerate(items):
        _add_item(messages, f"input[{i}]", item)
    check_last_message(messages, "input")
    return tuple(messages)


def _add_item(messages: list[Message], place: str, item: Any) -> None:
    """Append the message of an item, or add its call to the last one."""
    if not isinstance(item, Mapping):
        raise invalid(place, item, 'an object such as {"role": "user", "content": "…"}')
    match item.get("type") or "message":
        case "message":
            messages.append(parse_message(place, item, messages))
        case "function_call":
            _add_call(messages, place, item)
        case "function_call_output":
            output = parse_text(f"{place}.output", item.get("output"))
            messages.append(result_message(output, item.get("call_id"), messages))
        case other:
            raise ApiError(
                f"{place}.type: {other!r}. {suggest(str(other), ITEM_TYPES)}", param=place
            )


def _add_call(messages: list[Message], place: str, item: Mapping[str, Any]) -> None:
    if not isinstance(item.get("name"), str):
        raise invalid(place, item, '{"type": "function_call", "call_id": "…", "name": "…"}')
    call = parse_call(place, item, item.get("call_id"))
    follows_text = bool(messages) and messages[-1]["role"] == "assistant"
    answer = messages.pop() if follows_text else assistant_message("", ())
    calls = (*answer.get("tool_calls", ()), call_object(call))
    messages.append({**answer, "tool_calls": calls})
