"""A request in the form of Responses: text and function calls, without anything that is kept."""

from collections.abc import Mapping
from typing import Any

from grupo.envs.proxy.api_error import ApiError, invalid, shown
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.request_fields import (
    COMMON_OPTIONS,
    Options,
    check_body,
    flag,
    given_options,
    model_name,
    sampling_values,
    token_limit,
)
from grupo.envs.proxy.response_items import parse_items

NOT_APPLIED: Options = {
    **COMMON_OPTIONS,
    "max_tool_calls": (),
    "reasoning": ({},),
    "text": ({}, {"format": {"type": "text"}}),
    "truncation": ("disabled",),
}
LOGPROBS = "message.output_text.logprobs"
# fields that are refused, and what is allowed in place of them
REFUSED = {
    "previous_response_id": "leave it out, and send the earlier items in input: none are kept",
    "conversation": "leave it out, and send the earlier items in input: none are kept",
    "background": "false",
    "prompt": "leave it out, and send instructions and input",
}


def parse_responses_request(body: Any) -> ChatRequest:
    """The request in the body of a call; raises `ApiError` for a field that cannot be served."""
    body = check_body(body, "input")
    for name, allowed in REFUSED.items():
        if body.get(name):
            raise invalid(name, body[name], allowed)
    include = body.get("include") or []
    if not isinstance(include, list):
        raise invalid("include", include, f"a list of names, such as {LOGPROBS!r}")
    given = given_options(body, NOT_APPLIED)
    others = ("include",) if set(map(str, include)) - {LOGPROBS} else ()
    return ChatRequest(
        parse_items(body),
        _tools(body),
        max_new_tokens=token_limit(body, "max_output_tokens"),
        stream=flag(body, "stream"),
        logprobs=LOGPROBS in include,
        not_applied=(*given, *others),
        sampling=sampling_values(body, given),
        model=model_name(body),
        messages_field="input",
    )


def _tools(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The functions in the form of chat completions, which chat templates read."""
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise invalid("tools", tools, "a list of functions")
    functions = tuple(_function(f"tools[{i}]", tool) for i, tool in enumerate(tools))
    return () if body.get("tool_choice") == "none" else functions


def _function(place: str, tool: Any) -> Mapping[str, Any]:
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if isinstance(kind, str) and kind != "function":
        raise ApiError(f"{place}.type: {shown(kind)}. Allowed: 'function'.", param=place)
    if not kind or not isinstance(tool.get("name"), str):
        allowed = '{"type": "function", "name": "…", "parameters": {…}}'
        raise invalid(place, tool, allowed)
    function = {key: value for key, value in tool.items() if key != "type"}
    return {"type": "function", "function": function}
