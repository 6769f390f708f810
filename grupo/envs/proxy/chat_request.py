"""A request of chat completions: what the policy reads, and which options apply.

In training the policy samples from the distribution that is trained. Options that would change it
do not apply, and are counted; `stop` and the limits of length apply, since they only end an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grupo.core.model_call import NO_LIMIT
from grupo.core.types import Message
from grupo.envs.proxy.api_error import ApiError, invalid
from grupo.envs.proxy.messages import parse_messages
from grupo.util.json_text import check_unicode, has_more_values
from grupo.util.limits import REQUEST_VALUES

# options that do not apply, with the values that ask for nothing; None asks for nothing anywhere
SAMPLING_OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "temperature": (1,),
    "top_p": (1,),
    "top_k": (-1, 0),
    "min_p": (0,),
}
NOT_APPLIED: Mapping[str, tuple[Any, ...]] = {
    **SAMPLING_OPTIONS,
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "seed": (),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": (True,),
}


@dataclass(frozen=True)
class ChatRequest:
    """A valid request.

    Args:
        messages: All messages.
        tools: Function schemas.
        stop_strings: Strings that end the answer.
        max_new_tokens: The most tokens of the answer.
        stream: The answer is sent as events.
        stream_usage: The events end with the number of tokens.
        logprobs: The answer has the log-probability of each token.
        not_applied: Names of options that the request gives, and that do not apply in training.
        sampling: Those of them that a policy applies outside of training, with their values.
        model: Name of the model, which the answer repeats.
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


def parse_request(body: Any) -> ChatRequest:
    """The request in the body of a call; raises `ApiError` for a field that cannot be served."""
    if not isinstance(body, Mapping):
        raise ApiError("The body is no object. Allowed: JSON with the field 'messages'.")
    if has_more_values(body, REQUEST_VALUES.maximum):
        raise ApiError(f"The body has too many values. Allowed: {REQUEST_VALUES.allowed}.")
    try:
        check_unicode(body)
    except ValueError as error:
        raise ApiError(f"The body: {error}.") from error
    _check_single_answer(body)
    options = body.get("stream_options") or {}
    given = [name for name in NOT_APPLIED if not _asks_for_nothing(name, body.get(name))]
    return ChatRequest(
        parse_messages(body.get("messages")),
        _tools(body),
        _stop_strings(body.get("stop")),
        _max_new_tokens(body),
        _flag(body, "stream"),
        isinstance(options, Mapping) and _flag(options, "include_usage"),
        _flag(body, "logprobs"),
        tuple(given),
        {name: _number(name, body[name]) for name in given if name in SAMPLING_OPTIONS},
        str(body.get("model") or "policy"),
    )


def _check_single_answer(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise invalid("n", body["n"], "1; send the request again for another answer")
    if body.get("top_logprobs"):
        raise invalid("top_logprobs", body["top_logprobs"], "0; logprobs gives those of the answer")


def _asks_for_nothing(name: str, value: Any) -> bool:
    return value is None or value in NOT_APPLIED[name]


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value not in (None, True, False):
        raise invalid(name, value, "true or false")
    return bool(value)


def _max_new_tokens(body: Mapping[str, Any]) -> int:
    names = ("max_completion_tokens", "max_tokens")
    limits = [_positive(name, body[name]) for name in names if body.get(name) is not None]
    return min(limits, default=NO_LIMIT)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise invalid(name, value, "a number")
    return value


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid(name, value, "a whole number of 1 or more")
    return value


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
