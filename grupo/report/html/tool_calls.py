"""Calls of tools in what a rollout said, read as the world of tools reads them."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from grupo.envs.tools.tool_calls import CLOSE_TAG, OPEN_TAG, ToolCallError, parse_calls
from grupo.report.read_run import Record

CallSpan = tuple[int, int, list[Record]]  # its first part, the first behind it, the calls in it


def with_calls(actions: Sequence[Record]) -> list[Record]:
    """A rollout's actions; `calls` of those that call tools, `answers` of those that hear of it.

    Each of `calls` has `parts`, from which part up to which, and `said`, the calls that begin
    there: a name and arguments as texts, or what is wrong. A call may go on in the next action of
    its turn, where nothing more is `said`. `answers` is how many calls the world answers.
    """
    found, asked = list[Record](), 0
    for turn in _split_turns(actions):
        stretches = _call_spans([part for action in turn for part in action["parts"]])
        heard = [{"answers": asked} if asked else {}, *({} for _ in turn[1:])]
        called = _spans_by_action([len(action["parts"]) for action in turn], stretches)
        found += [{**a, **c, **h} for a, c, h in zip(turn, called, heard, strict=True)]
        asked = sum(len(said) for *_, said in stretches)
    return found


def _split_turns(actions: Sequence[Record]) -> list[list[Record]]:
    """A turn begins where the world speaks."""
    turns = list[list[Record]]()
    for action in actions:
        if "world" in action or not turns:
            turns.append([])
        turns[-1].append(action)
    return turns


def _call_spans(parts: Sequence[str]) -> list[CallSpan]:
    """The parts that hold calls; calls that have a part in common are in one stretch."""
    ends, found = list(accumulate(map(len, parts))), list[CallSpan]()
    for begin, end, call in _locate_calls("".join(parts)):
        first, behind = bisect_right(ends, begin), bisect_left(ends, end) + 1
        shares = bool(found) and first < found[-1][1]
        first, _, said = found.pop() if shares else (first, behind, [])
        found.append((first, behind, [*said, call]))
    return found


def _locate_calls(text: str) -> Iterator[tuple[int, int, Record]]:
    """Every call of a turn, and from which character up to which it was written."""
    starts = [match.start() for match in re.finditer(re.escape(OPEN_TAG), text)]
    for (begin, limit), call in zip(pairwise([*starts, len(text)]), parse_calls(text), strict=True):
        end = text.find(CLOSE_TAG, begin, limit)
        yield begin, end + len(CLOSE_TAG) if end >= 0 else limit, _call_payload(call)


def _spans_by_action(lengths: Sequence[int], stretches: Sequence[CallSpan]) -> list[Record]:
    """What of the stretches of a turn lies in each of its actions, which have so many parts."""
    found = list[Record]()
    for begin, end in pairwise(accumulate(lengths, initial=0)):
        here = [
            {
                "parts": [max(first, begin) - begin, min(behind, end) - begin],
                "said": said if first >= begin else [],
            }
            for first, behind, said in stretches
            if first < end and behind > begin
        ]
        found.append({"calls": here} if here else {})
    return found


def _call_payload(call: tuple[str, object] | ToolCallError) -> Record:
    if isinstance(call, ToolCallError):
        return {"wrong": str(call).removeprefix(f"{call.kind}: ")}
    name, given = call
    arguments = given.items() if isinstance(given, dict) else [("", given)]
    return {"name": name, "arguments": [[key, _text(value)] for key, value in arguments]}


def _text(value: object) -> str:
    """Text as it is, all else as JSON: so NaN, which Python reads and no browser does, is text."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "nested too deep to be shown"
