"""Objects with bare names and texts between `<escape>`, as FunctionGemma writes them.

Source: the chat template of google/functiongemma-270m-it, and the page on its formatting in
Google's documentation of Gemma.
"""

import json
import re
from collections.abc import Iterator

from grupo.core.call_markers import FUNCTIONGEMMA as MARKERS
from grupo.envs.tools.formats.call import ToolCall, ToolFormat, json_value, split_calls

CALL, CALL_END, ESCAPE, RESPONSE = MARKERS
OPENING = re.compile(re.escape(CALL))
HEAD = re.compile(rf"{CALL}\s*call:\s*(?P<name>[^\s{{}}]+)\s*(?=\{{)")
BARE_NAME = re.compile(r'([{,])([^{}\[\],:"]*):')
NONE = re.compile(r"\bNone\b")  # as the template renders a missing value
ALLOWED = f"{CALL}call:name{{key:{ESCAPE}text{ESCAPE},other:1}}{CALL_END}"


def parse_functiongemma(text: str) -> Iterator[ToolCall]:
    """The calls up to the first result: a text after it is the policy's own invention.

    >>> text = f"{CALL}call:look{{at:{ESCAPE}the sea{ESCAPE},times:2}}{CALL_END}"
    >>> [(call.name, call.arguments) for call in parse_functiongemma(text)]
    [('look', {'at': 'the sea', 'times': 2})]
    """
    text, _, _ = text.partition(RESPONSE)
    for start, limit in split_calls(text, OPENING):
        yield _read_call(text[start:limit], start)


def _read_call(piece: str, start: int) -> ToolCall:
    """The call of a piece of the text, which begins at `start`."""
    whole = start + len(piece)
    head = HEAD.match(piece)
    if not head:
        return ToolCall(start, whole, error=f"Allowed: {ALLOWED}")
    close = piece.find(CALL_END, head.end())
    if close < 0:
        return ToolCall(start, whole, head["name"], error=f"a call ends with {CALL_END}")
    end = start + close + len(CALL_END)
    try:
        arguments = json_value(_as_json(piece[head.end() : close]))
    except ValueError as error:
        message = f"{error}, with {ESCAPE} read as quotes. Allowed: {ALLOWED}"
        return ToolCall(start, end, head["name"], error=message)
    return ToolCall(start, end, head["name"], arguments)


def _as_json(text: str) -> str:
    """An object in FunctionGemma's notation as JSON.

    >>> _as_json("{at:<escape>the sea<escape>,times:[1,None]}")
    '{"at":"the sea","times":[1,null]}'
    """
    parts = text.split(ESCAPE)
    parts[::2] = [NONE.sub("null", BARE_NAME.sub(_quoted_name, part)) for part in parts[::2]]
    parts[1::2] = [json.dumps(part, ensure_ascii=False) for part in parts[1::2]]
    return "".join(parts)


def _quoted_name(match: re.Match[str]) -> str:
    return f"{match[1]}{json.dumps(match[2].strip(), ensure_ascii=False)}:"


FUNCTIONGEMMA = ToolFormat("functiongemma", parse_functiongemma, markers=(CALL,))
