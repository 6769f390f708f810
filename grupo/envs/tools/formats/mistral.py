"""JSON after the token `[TOOL_CALLS]`, as Mistral's models write it.

Models with the tokenizers v2 and v3 write one list of objects; later ones write `[TOOL_CALLS]` and
the name before the arguments of each call. Source: mistral-common, and the chat templates of
mistralai/Mistral-7B-Instruct-v0.3 and Mistral-Small-3.2-24B-Instruct-2506.
"""

import re
from collections.abc import Iterator

from grupo.core.call_markers import MISTRAL as MARKERS
from grupo.envs.tools.formats.call import (
    ToolCall,
    ToolFormat,
    call_of_object,
    json_value_at,
    valid_call_id,
)

CALLS, CALL_ID, ARGUMENTS = MARKERS
NAMED_CALL = re.compile(
    rf"\s*(?P<name>[\w.-]+)\s*(?:{re.escape(CALL_ID)}\s*(?P<id>\w*)\s*)?"
    rf"(?:{re.escape(ARGUMENTS)})?\s*(?=\{{)"
)
LIST = re.compile(r"\s*(?=\[)")
FORMS = f'{CALLS}name{ARGUMENTS}{{...}}, or {CALLS}[{{"name": ..., "arguments": {{...}}}}]'


def parse_mistral(text: str) -> Iterator[ToolCall]:
    """The calls after each `[TOOL_CALLS]`.

    >>> new = '[TOOL_CALLS]add[ARGS]{"a": 1}'
    >>> old = '[TOOL_CALLS][{"name": "add", "arguments": {"a": 2}, "id": "9AbCdEfGh"}]'
    >>> [(call.name, call.arguments, call.call_id) for call in parse_mistral(new + old)]
    [('add', {'a': 1}, ''), ('add', {'a': 2}, '9AbCdEfGh')]
    """
    start = text.find(CALLS)
    while start >= 0:
        following = text.find(CALLS, start + len(CALLS))
        limit = following if following >= 0 else len(text)
        yield from _calls_of(text[start:limit], start)
        start = following


def _calls_of(piece: str, start: int) -> Iterator[ToolCall]:
    """The calls of a piece that begins with its only `[TOOL_CALLS]`, at `start` of the text."""
    whole = start + len(piece)
    named = NAMED_CALL.match(piece, len(CALLS))
    opening = named or LIST.match(piece, len(CALLS))
    if not opening:
        yield ToolCall(start, whole, error=f"Allowed: {FORMS}")
        return
    try:
        value, length = json_value_at(piece, opening.end())
    except ValueError as error:
        yield ToolCall(start, whole, error=str(error))
        return
    end = start + length
    if named:
        yield ToolCall(start, end, named["name"], value, call_id=valid_call_id(named["id"]))
    elif not value:
        yield ToolCall(start, end, error=f"the list is empty. Allowed: {FORMS}")
    else:
        for call in value:
            yield call_of_object(call, start, end)


MISTRAL = ToolFormat("mistral", parse_mistral, markers=(CALLS,))
