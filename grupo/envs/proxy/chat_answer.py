"""An answer of the policy as a chat completion, whole or as a stream of events."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grupo.core.types import Response
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.messages import short_call_id
from grupo.envs.proxy.tool_rendering import ToolRendering
from grupo.envs.tools.formats import ToolCall


@dataclass(frozen=True)
class ChatAnswer:
    """An answer as the agent reads it.

    Args:
        identifier: Identifies the answer among those of its rollout.
        content: The text, without its tool calls and without the stop string that ended it.
        calls: The tool calls.
        response: The policy's response, with exact tokens.
        num_prompt_tokens: Tokens that the policy read before it.
    """

    identifier: str
    content: str
    calls: tuple[ToolCall, ...]
    response: Response
    num_prompt_tokens: int

    @property
    def finish_reason(self) -> str:
        """Why the answer ends, in OpenAI's words."""
        if self.calls:
            return "tool_calls"
        return "length" if self.response.finish_reason == "length" else "stop"


def make_answer(
    identifier: str,
    request: ChatRequest,
    text: str,
    response: Response,
    num_prompt_tokens: int,
    rendering: ToolRendering,
) -> ChatAnswer:
    """The answer of a response with this text to a request, whose calls have identifiers."""
    shown = _without_stop_string(text, request) if response.finish_reason == "stop" else text
    content, calls = rendering.split_answer(shown, request.tools)
    ids = (call.call_id or short_call_id(f"{identifier}_{i}") for i, call in enumerate(calls))
    named = tuple(replace(call, call_id=i) for call, i in zip(calls, ids, strict=True))
    return ChatAnswer(identifier, content, named, response, num_prompt_tokens)


def completion(request: ChatRequest, answer: ChatAnswer) -> Mapping[str, Any]:
    """The body of a response that is not streamed."""
    message = {"role": "assistant", "content": answer.content, "refusal": None}
    if answer.calls:
        message |= {"content": answer.content or None, "tool_calls": _call_objects(answer)}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(request, answer),
        "finish_reason": answer.finish_reason,
    }
    usage = {"usage": _usage(answer)}
    return {**_head(request, answer, "chat.completion"), "choices": [choice], **usage}


def events(request: ChatRequest, answer: ChatAnswer) -> Iterator[str]:
    """The server-sent events of a response that is streamed."""
    head = _head(request, answer, "chat.completion.chunk")

    def event(delta: Mapping[str, Any], logprobs: Any = None, reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return _event({**head, "choices": [choice]})

    yield event({"role": "assistant", "content": ""})
    if answer.content or request.logprobs:
        yield event({"content": answer.content}, _logprobs(request, answer))
    for index, call in enumerate(_call_objects(answer)):
        yield event({"tool_calls": [{"index": index, **call}]})
    yield event({}, reason=answer.finish_reason)
    if request.stream_usage:
        yield _event({**head, "choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


def _without_stop_string(text: str, request: ChatRequest) -> str:
    """The text before the stop string of the request that it ends with, if it ends with one."""
    ends = [len(text) - len(stop) for stop in request.stop_strings if text.endswith(stop)]
    return text[: min(ends, default=len(text))]


def _head(request: ChatRequest, answer: ChatAnswer, kind: str) -> Mapping[str, Any]:
    identifier = f"chatcmpl-{answer.identifier}"
    return {"id": identifier, "object": kind, "created": int(time.time()), "model": request.model}


def _call_objects(answer: ChatAnswer) -> list[Mapping[str, Any]]:
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in answer.calls
    ]


def logprob_entries(request: ChatRequest, answer: ChatAnswer) -> Sequence[Mapping[str, Any]]:
    """Log-probabilities of the tokens, which are named by their ids as vLLM can name them.

    There are none if the request does not want them.
    """
    if not request.logprobs:
        return []
    pairs = zip(answer.response.items, answer.response.logp, strict=True)
    return [
        {"token": f"token_id:{item}", "logprob": logp, "bytes": None, "top_logprobs": []}
        for item, logp in pairs
    ]


def _logprobs(request: ChatRequest, answer: ChatAnswer) -> Mapping[str, Any] | None:
    entries = logprob_entries(request, answer)
    return {"content": entries, "refusal": None} if request.logprobs else None


def _usage(answer: ChatAnswer) -> Mapping[str, int]:
    prompt, generated = answer.num_prompt_tokens, len(answer.response.items)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
    }


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
