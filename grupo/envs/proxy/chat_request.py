"""A request to the policy, and how it stands in the form of chat completions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grupo.core.model_call import NO_LIMIT
from grupo.core.types import Message
from grupo.envs.proxy.api_error import invalid
from grupo.envs.proxy.messages import parse_messages
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

NOT_APPLIED: Options = {
    **COMMON_OPTIONS,
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "seed": (),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
}


@dataclass(frozen=True)
class ChatRequest:
    """A valid request.

    Args:
        messages: All messages.
        tools: Function schemas, in the form of chat completions.
        stop_strings: Strings that end the answer.
        max_new_tokens: The most tokens of the answer.
        stream: The answer is sent as events.
        stream_usage: The events of chat completions end with the number of tokens.
        logprobs: The answer has the log-probability of each token.
        not_applied: Names of options that the request gives, and that do not apply in training.
        sampling: Those of them that a policy applies outside of training, with their values.
        model: Name of the model, which the answer repeats.
        messages_field: Name of the field that holds the messages, for errors.
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    stop_strings: tuple[str, ...] = ()
    max_new_tokens: int = NO_LIMIT
    stream: bool = False
    stream_usage: bool = False
    logprobs: bool = False
    not_applied: tuple[str, ...] = ()
    sampling: Mapping[str, float] = field(default_factory=dict)
    model: str = "policy"
    messages_field: str = "messages"


def parse_request(body: Any) -> ChatRequest:
    """The request in the body of a call; raises `ApiError` for a field that cannot be served."""
    body = check_body(body, "messages")
    if body.get("n") not in (None, 1):
        raise invalid("n", body["n"], "1; send the request again for another answer")
    options = body.get("stream_options") or {}
    given = given_options(body, NOT_APPLIED)
    return ChatRequest(
        parse_messages(body.get("messages")),
        _tools(body),
        _stop_strings(body.get("stop")),
        token_limit(body, "max_completion_tokens", "max_tokens"),
        flag(body, "stream"),
        isinstance(options, Mapping) and flag(options, "include_usage"),
        flag(body, "logprobs"),
        given,
        sampling_values(body, given),
        model_name(body),
    )


def _stop_strings(value: Any) -> tuple[str, ...]:
    strings = [value] if isinstance(value, str) else value or []
    if not isinstance(strings, list) or not all(isinstance(s, str) and s for s in strings):
        raise invalid("stop", value, "a text, or a list of texts that are not empty")
    return tuple(strings)


def _tools(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise invalid("tools", tools, "a list of functions")
    for i, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            allowed = '{"type": "function", "function": {"name": "…", "parameters": {…}}}'
            raise invalid(f"tools[{i}]", tool, allowed)
    return () if body.get("tool_choice") == "none" else tuple(tools)
