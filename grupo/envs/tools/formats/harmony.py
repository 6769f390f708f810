"""Messages to functions on the commentary channel, as gpt-oss writes them.

Source: the harmony response format in OpenAI's cookbook, and the template of openai/gpt-oss-20b.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from grupo.core.call_markers import HARMONY as MARKERS
from grupo.envs.tools.formats.call import ToolCall, ToolFormat, json_value
from grupo.models.harmony import harmony_message

CHANNEL, MESSAGE, _, CALL, START, _ = MARKERS
NEXT = re.compile(re.escape(f"{START}assistant"))  # the prompt ends with it, too
RECIPIENT = re.compile(r"\bto=functions\.([^\s<]+)")


def parse_harmony(text: str) -> Iterator[ToolCall]:
    """The messages that are addressed to a function; other messages are no calls.

    >>> text = (
    ...     "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant<|channel|>commentary"
    ...     ' to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>'
    ... )
    >>> [(call.name, call.arguments) for call in parse_harmony(text)]
    [('add', {'a': 1})]
    """
    if CHANNEL not in text:
        return
    ends = [next_message.start() for next_message in NEXT.finditer(text)]
    for start, end in pairwise([0, *ends, len(text)]):
        yield from _read_message(text, start, end)


def _read_message(text: str, start: int, end: int) -> Iterator[ToolCall]:
    """The call in a message between these places, if it is addressed to a function."""
    header_end = text.find(MESSAGE, start, end)
    recipient = RECIPIENT.search(text, start, max(start, header_end))
    if not recipient:
        return
    name, body = recipient[1], header_end + len(MESSAGE)
    close = text.find(CALL, body, end)
    if close < 0:
        yield ToolCall(start, end, name, error=f"a call ends with {CALL}")
        return
    try:
        arguments = json_value(text[body:close])
    except ValueError as error:
        yield ToolCall(start, close + len(CALL), name, error=str(error))
    else:
        yield ToolCall(start, close + len(CALL), name, arguments)


def final_text(text: str) -> str:
    """The text of an answer outside of its thoughts, without the names of channels.

    >>> final_text("<|channel|>analysis<|message|>Sum.<|end|>")
    ''
    """
    return str(harmony_message(text)["content"]) if CHANNEL in text else text


HARMONY = ToolFormat("harmony", parse_harmony, markers=(CHANNEL,), content=final_text)
