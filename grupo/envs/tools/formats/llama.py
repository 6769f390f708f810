"""JSON without tags, as Llama 3.1, 3.2 and 3.3 write it: a text that is a call, or several.

Source: the chat template of meta-llama/Llama-3.1-8B-Instruct. vLLM separates several calls by ";".
"""

import json
import re
from collections.abc import Iterator, Sequence

from grupo.core.call_markers import LLAMA as MARKERS
from grupo.envs.tools.formats.call import (
    NamedArguments,
    ToolCall,
    ToolFormat,
    call_of_object,
    json_value_at,
)

(PYTHON_TAG,) = MARKERS
BEGINS_CALL = re.compile(r'\s*\{\s*"(?:name|type)"\s*:')
NEXT_OBJECT = re.compile(r"[\s;,]*(?=\{)")
MARKER = '"parameters": dictionary of argument name and its value'

PROMPT = """You may call these functions:

{tools}

To call one, write nothing but JSON: {{"name": ..., "parameters": {{...}}}}"""


def parse_llama(text: str) -> Iterator[ToolCall]:
    """The calls of a text that begins with a call, or has `<|python_tag|>` before it.

    Any other text has no calls, also if it contains JSON: there are no tags to find a call by.

    >>> [call.arguments for call in parse_llama('{"name": "add", "parameters": {"a": 2}}')]
    [{'a': 2}]
    >>> list(parse_llama('{"answer": 4}'))
    []
    """
    before, tag, _ = text.partition(PYTHON_TAG)
    if not tag and not BEGINS_CALL.match(text):
        return
    start = len(before) if tag else 0
    place = _next_object(text, start + len(tag))
    if place is None:
        yield ToolCall(start, len(text), error='Allowed: {"name": ..., "parameters": {...}}')
    while place is not None:
        try:
            value, end = json_value_at(text, place)
        except ValueError as error:
            yield ToolCall(start, len(text), error=str(error))
            return
        yield call_of_object(value, start, end, "parameters")
        start = place = _next_object(text, end)


def _next_object(text: str, place: int) -> int | None:
    """Where an object begins, after separators; None if something else follows."""
    found = NEXT_OBJECT.match(text, place)
    return found.end() if found else None


def write_llama(calls: Sequence[NamedArguments]) -> str:
    """Calls with semicolons between them."""
    return "; ".join(json.dumps({"name": name, "parameters": args}) for name, args in calls)


LLAMA = ToolFormat("llama", parse_llama, markers=(MARKER,), prompt=PROMPT, write=write_llama)
