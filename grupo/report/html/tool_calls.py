"""Tool calls in the generated text of rollouts, parsed as the tool environment parses them."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from grupo.envs.tools.formats import DEFAULT_FORMAT, FORMATS, ToolCall, ToolFormat
from grupo.envs.tools.formats.hermes import OPEN_TAG
from grupo.report.read_run import Record

# in a line of JSON: the first character of a tag, before the second one or at the end of an item
MAY_CONTAIN_CALL = re.compile(f'{re.escape(OPEN_TAG[0])}(?:{re.escape(OPEN_TAG[1])}|")'.encode())
CallSpan = tuple[int, int, list[Record]]  # first item, end (exclusive), the calls in between


def format_of_recipe(recipe: Mapping[str, Any]) -> ToolFormat:
    """The format of tool calls in a run, by the data of its recipe."""
    for part in _objects(recipe):
        is_toolbox = str(part.get("component")).endswith(":Toolbox")
        if is_toolbox and (tool_format := FORMATS.get(str(part.get("format")))):
            return tool_format
    return DEFAULT_FORMAT


def may_contain_call(line: bytes, tool_format: ToolFormat) -> bool:
    """Whether a line of JSON has to be parsed for calls."""
    return tool_format != DEFAULT_FORMAT or bool(MAY_CONTAIN_CALL.search(line))


def with_calls(
    responses: Sequence[Record], tool_format: ToolFormat = DEFAULT_FORMAT
) -> list[Record]:
    """Annotate a rollout's responses with their tool calls and with the calls that are answered.

    `call_spans` of a response that contains tool calls: each span has `item_range`, the first item
    and the end, and `calls`, the calls that begin in it: name and arguments as text, or `error`.
    A call may continue in the next response of its turn; that span has no `calls`.
    `answered_calls` of a response whose observation answers tool calls: their number.
    """
    annotated = list[Record]()
    num_unanswered = 0
    for turn in _split_turns(responses):
        items = [item for response in turn for item in response["items"]]
        spans = _call_spans(items, tool_format)
        by_response = _spans_by_response([len(response["items"]) for response in turn], spans)
        if num_unanswered:
            by_response[0] = {**by_response[0], "answered_calls": num_unanswered}
        annotated += [{**response, **s} for response, s in zip(turn, by_response, strict=True)]
        num_unanswered = sum(len(calls) for *_, calls in spans)
    return annotated


def _split_turns(responses: Sequence[Record]) -> list[list[Record]]:
    """Every observation starts a new turn."""
    turns = list[list[Record]]()
    for response in responses:
        if "observation" in response or not turns:
            turns.append([])
        turns[-1].append(response)
    return turns


def _call_spans(items: Sequence[str], tool_format: ToolFormat) -> list[CallSpan]:
    """The item ranges of tool calls; calls that share an item are in one span."""
    ends = list(accumulate(map(len, items)))
    spans = list[CallSpan]()
    for call in tool_format.parse("".join(items)):
        first = bisect_right(ends, call.start)
        stop = bisect_left(ends, call.end) + 1
        is_shared = bool(spans) and first < spans[-1][1]
        first, _, calls = spans.pop() if is_shared else (first, stop, [])
        spans.append((first, stop, [*calls, _call_payload(call)]))
    return spans


def _spans_by_response(lengths: Sequence[int], spans: Sequence[CallSpan]) -> list[Record]:
    """Split the spans of a turn at its responses, which have these numbers of items."""
    split = list[Record]()
    for begin, end in pairwise(accumulate(lengths, initial=0)):
        inside = [
            {
                "item_range": [max(first, begin) - begin, min(stop, end) - begin],
                "calls": calls if first >= begin else [],
            }
            for first, stop, calls in spans
            if first < end and stop > begin
        ]
        split.append({"call_spans": inside} if inside else {})
    return split


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a JSON value."""
    remaining = [value]
    while remaining:
        part = remaining.pop()
        if isinstance(part, Mapping):
            yield part
            remaining += part.values()
        elif isinstance(part, list):
            remaining += part


def _call_payload(call: ToolCall) -> Record:
    if call.error:
        return {"error": " ".join(call.error.split())}
    arguments = call.arguments
    pairs = arguments.items() if isinstance(arguments, dict) else [("", arguments)]
    return {"name": call.name, "arguments": [[key, _text(value)] for key, value in pairs]}


def _text(value: object) -> str:
    """Strings unchanged, other values as JSON text: browsers cannot parse NaN as JSON."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply to be shown"
