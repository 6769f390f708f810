"""Tool calls in the generated text of rollouts, parsed as the tool environment parses them."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from grupo.envs.tools.tool_calls import CLOSE_TAG, OPEN_TAG, ToolCallError, parse_calls
from grupo.report.read_run import Record

# in a line of JSON: the first character of a tag, before the second one or at the end of an item
MAY_CONTAIN_CALL = re.compile(f'{re.escape(OPEN_TAG[0])}(?:{re.escape(OPEN_TAG[1])}|")'.encode())
CallSpan = tuple[int, int, list[Record]]  # first item, end (exclusive), the calls in between


def with_calls(responses: Sequence[Record]) -> list[Record]:
    """Annotate a rollout's responses with their tool calls and with the calls that are answered.

    `call_spans` of a response that contains tool calls: each span has `item_range`, the first item
    and the end, and `calls`, the calls that begin in it: name and arguments as text, or `error`.
    A call may continue in the next response of its turn; that span has no `calls`.
    `answered_calls` of a response whose observation answers tool calls: their number.
    """
    annotated = list[Record]()
    num_unanswered = 0
    for turn in _split_turns(responses):
        spans = _call_spans([item for response in turn for item in response["items"]])
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


def _call_spans(items: Sequence[str]) -> list[CallSpan]:
    """The item ranges of tool calls; calls that share an item are in one span."""
    ends = list(accumulate(map(len, items)))
    spans = list[CallSpan]()
    for begin, end, call in _locate_calls("".join(items)):
        first = bisect_right(ends, begin)
        stop = bisect_left(ends, end) + 1
        is_shared = bool(spans) and first < spans[-1][1]
        first, _, calls = spans.pop() if is_shared else (first, stop, [])
        spans.append((first, stop, [*calls, call]))
    return spans


def _locate_calls(text: str) -> Iterator[tuple[int, int, Record]]:
    """Every call of a turn with the range of its characters."""
    starts = [match.start() for match in re.finditer(re.escape(OPEN_TAG), text)]
    for (begin, limit), call in zip(pairwise([*starts, len(text)]), parse_calls(text), strict=True):
        end = text.find(CLOSE_TAG, begin, limit)
        yield begin, end + len(CLOSE_TAG) if end >= 0 else limit, _call_payload(call)


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


def _call_payload(call: tuple[str, object] | ToolCallError) -> Record:
    if isinstance(call, ToolCallError):
        return {"error": str(call).removeprefix(f"{call.kind}: ")}
    name, arguments = call
    pairs = arguments.items() if isinstance(arguments, dict) else [("", arguments)]
    return {"name": name, "arguments": [[key, _text(value)] for key, value in pairs]}


def _text(value: object) -> str:
    """Strings unchanged, other values as JSON text: browsers cannot parse NaN as JSON."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "nested too deeply to be shown"
