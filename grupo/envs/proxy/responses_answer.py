"""An answer of the policy in the form of Responses, whole or as a stream of events.

Source: the types of the package openai 3.54, `openai.types.responses`, and what its helper
`client.responses.stream` requires of the order of events.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from grupo.envs.proxy.chat_answer import ChatAnswer, logprob_entries
from grupo.envs.proxy.chat_request import ChatRequest

Item = Mapping[str, Any]


def response_body(request: ChatRequest, answer: ChatAnswer) -> Mapping[str, Any]:
    """The body of a response that is not streamed."""
    prompt, generated = answer.num_prompt_tokens, len(answer.response.items)
    is_cut = answer.finish_reason == "length"
    return {
        **_unfinished(request, answer),
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": _items(request, answer),
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": generated,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + generated,
        },
    }


def response_events(request: ChatRequest, answer: ChatAnswer) -> Iterator[str]:
    """The server-sent events of a response that is streamed."""
    numbers = count()

    def event(kind: str, **fields: Any) -> str:
        data = {"type": kind, "sequence_number": next(numbers), **fields}
        return f"event: {kind}\ndata: {json.dumps(data)}\n\n"

    started = _unfinished(request, answer)
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    whole = response_body(request, answer)
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        yield event("response.output_item.added", output_index=index, item=_empty(item))
        events = _text_events if item["type"] == "message" else _call_events
        for kind, fields in events(item):
            yield event(kind, **place, **fields)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{whole['status']}", response=whole)


def _text_events(item: Item) -> Iterator[tuple[str, Mapping[str, Any]]]:
    (part,) = item["content"]
    logprobs = part["logprobs"]
    place = {"content_index": 0}
    yield "response.content_part.added", {**place, "part": {**part, "text": "", "logprobs": []}}
    yield "response.output_text.delta", {**place, "delta": part["text"], "logprobs": logprobs}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": logprobs}
    yield "response.content_part.done", {**place, "part": part}


def _call_events(item: Item) -> Iterator[tuple[str, Mapping[str, Any]]]:
    arguments = item["arguments"]
    yield "response.function_call_arguments.delta", {"delta": arguments}
    done = {"arguments": arguments, "name": item["name"]}
    yield "response.function_call_arguments.done", done


def _unfinished(request: ChatRequest, answer: ChatAnswer) -> Mapping[str, Any]:
    """The response before its first item."""
    return {
        "id": f"resp_{answer.identifier}",
        "object": "response",
        "created_at": int(time.time()),
        "model": request.model,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [{"type": "function", **tool["function"]} for tool in request.tools],
        "usage": None,
    }


def _items(request: ChatRequest, answer: ChatAnswer) -> Sequence[Item]:
    """The text, unless there are calls alone, and the calls."""
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{call.call_id}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }
        for call in answer.calls
    ]
    if calls and not answer.content and not request.logprobs:
        return calls
    logprobs = [{**entry, "bytes": []} for entry in logprob_entries(request, answer)]
    part = {"type": "output_text", "text": answer.content, "annotations": [], "logprobs": logprobs}
    message = {
        "type": "message",
        "id": f"msg_{answer.identifier}",
        "role": "assistant",
        "content": [part],
        "status": "incomplete" if answer.finish_reason == "length" else "completed",
    }
    return [message, *calls]


def _empty(item: Item) -> Item:
    """An item before its first delta."""
    empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
    return {**item, **empty, "status": "in_progress"}
