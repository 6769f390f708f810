"""A list of JSON after a marker, as Phi-4-mini writes it.

The token `<|tool_call|>` is the marker with the published template; the model often leaves out the
token that closes a call, or the brackets. vLLM's chat template for Phi-4-mini asks for the word
`functools` in its place. Both templates render results of the role "tool". Source: the card of
microsoft/Phi-4-mini-instruct, the handler of the model in the Berkeley Function-Calling
Leaderboard, and vLLM's template and parser `phi4_mini_json`.
"""

import json
import re
from collections.abc import Iterator, Sequence

from grupo.core.call_markers import PHI4_MINI as MARKERS
from grupo.envs.tools.formats.call import (
    NamedArguments,
    ToolCall,
    ToolFormat,
    call_of_object,
    json_value_at,
    split_calls,
)

OPEN_TAG, CLOSE_TAG = MARKERS
WORD = "functools["
OPENING = re.compile(rf"{re.escape(OPEN_TAG)}|{re.escape(WORD)}")
FIRST_VALUE = re.compile(rf"(?:{re.escape(OPEN_TAG)}|functools)\s*(?=[\[{{])")
NEXT_VALUE = re.compile(r"\s*,?\s*(?=\{)")
END = re.compile(rf"(?:\s*{re.escape(CLOSE_TAG)})?")
ALLOWED = f'{OPEN_TAG}[{{"name": ..., "arguments": {{...}}}}]{CLOSE_TAG}'

PROMPT = "You are a helpful assistant with some tools.<|tool|>{tools}<|/tool|>"


def parse_phi4_mini(text: str) -> Iterator[ToolCall]:
    """Every call after the policy's thoughts.

    >>> card = '<|tool_call|>[{"name": "add", "arguments": {"a": 2}}]<|/tool_call|>'
    >>> vllm = 'functools[{"name": "add", "arguments": {"a": 3}}]'
    >>> [call.arguments for text in (card, vllm) for call in parse_phi4_mini(text)]
    [{'a': 2}, {'a': 3}]
    """
    for start, limit in split_calls(text, OPENING):
        yield from _read_calls(text[start:limit], start)


def _read_calls(piece: str, start: int) -> Iterator[ToolCall]:
    """The calls of a piece of the text, which begins at `start`."""
    whole = start + len(piece)
    found = FIRST_VALUE.match(piece)
    if not found:
        yield ToolCall(start, whole, error=f"Allowed: {ALLOWED}")
    while found:
        try:
            value, place = json_value_at(piece, found.end())
        except ValueError as error:
            yield ToolCall(start, whole, error=str(error))
            return
        end = END.match(piece, place)
        assert end, "the end of a call may be left out"
        for call in value if isinstance(value, list) else [value]:
            yield call_of_object(call, start, start + end.end())
        found = NEXT_VALUE.match(piece, place)


def write_phi4_mini(calls: Sequence[NamedArguments]) -> str:
    """Calls in the form of the model card."""
    objects = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return f"{OPEN_TAG}{json.dumps(objects)}{CLOSE_TAG}"


PHI4_MINI = ToolFormat(
    "phi4_mini",
    parse_phi4_mini,
    markers=("<|/tool|>", OPEN_TAG, WORD),
    prompt=PROMPT,
    write=write_phi4_mini,
    result_role="tool",
)
