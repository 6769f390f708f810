"""Messages to functions on the commentary channel, as gpt-oss writes them.

Source: the harmony response format in OpenAI's cookbook, and the template of openai/gpt-oss-20b.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from grupo.core.call_markers import HARMONY as MARKERS
from grupo.envs.tools.formats.call import ToolCall, ToolFormat, json_value

CHANNEL, MESSAGE, _, CALL, START, END = MARKERS
TOKENS = re.compile("|".join(map(re.escape, (MESSAGE, CALL, START, END))))
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
    start = 0  # the prompt ends with <|start|>assistant: the first header begins after it
    tokens = [*TOKENS.finditer(text), None]
    for token, following in pairwise(tokens):
        assert token
        if token[0] == MESSAGE:
            yield from _read_message(text, start, token, following)
        start = token.start() if token[0] == START else token.end()


def _read_message(
    text: str, start: int, token: re.Match[str], following: re.Match[str] | None
) -> Iterator[ToolCall]:
    """The call of a message, if it is addressed to a function.

    Args:
        text: The whole text.
        start: Where the header of the message begins.
        token: The `<|message|>` after the header.
        following: The token that ends the message; None if the text ends before.
    """
    recipient = RECIPIENT.search(text[start : token.start()])
    if not recipient:
        return
    name = recipient[1]
    if not following or following[0] != CALL:
        end = following.start() if following else len(text)
        yield ToolCall(start, end, name, error=f"a call ends with {CALL}")
        return
    try:
        arguments = json_value(text[token.end() : following.start()])
    except ValueError as error:
        yield ToolCall(start, following.end(), name, error=str(error))
    else:
        yield ToolCall(start, following.end(), name, arguments)


HARMONY = ToolFormat("harmony", parse_harmony, marker=CHANNEL)
