"""JSON between special tokens, as DeepSeek-V3, V3.1 and R1 write it.

V3.1 writes the name and the arguments with a separator between them. V3 and R1 write the word
"function" before the separator, and after it the name and a block of code with the arguments.
Their chat templates render results of the role "tool", and describe no tools. Source: the chat
templates of deepseek-ai/DeepSeek-V3-0324 and deepseek-ai/DeepSeek-V3.1, and the model card of the
latter.
"""

import json
import re
from collections.abc import Iterator, Sequence

from grupo.core.call_markers import DEEPSEEK as MARKERS
from grupo.envs.tools.formats.call import (
    NamedArguments,
    ToolCall,
    ToolFormat,
    json_value_at,
    split_calls,
)

CALLS, CALLS_END, CALL, CALL_END, SEPARATOR = MARKERS
FENCE = "```"
OPENING = re.compile(rf"{CALLS}(?:\s*{CALL})?|{CALL}")
HEAD = re.compile(
    rf"(?:{CALLS}\s*)?{CALL}"
    rf"(?:function{SEPARATOR}(?P<name_in_v3>[^\n]+)\n{FENCE}json\n|(?P<name>[^\n<]+){SEPARATOR})"
)
END = re.compile(rf"\s*(?:{FENCE})?\s*{CALL_END}")
ALLOWED = f"{CALL}name{SEPARATOR}{{...}}{CALL_END}"

PROMPT = f"""## Tools

You may call these functions:

{{tools}}

Write calls in this form, and nothing after them:
{CALLS}{CALL}name{SEPARATOR}{{{{"key": "value"}}}}{CALL_END}{CALLS_END}"""


def parse_deepseek(text: str) -> Iterator[ToolCall]:
    """Every call after the policy's thoughts.

    >>> call = write_deepseek([("add", {"a": 2})])
    >>> [(call.name, call.arguments) for call in parse_deepseek(call)]
    [('add', {'a': 2})]
    """
    for start, limit in split_calls(text, OPENING):
        yield _read_call(text[start:limit], start)


def _read_call(piece: str, start: int) -> ToolCall:
    """The call of a piece of the text, which begins at `start`."""
    whole = start + len(piece)
    head = HEAD.match(piece)
    if not head:
        return ToolCall(start, whole, error=f"Allowed: {ALLOWED}")
    name = (head["name_in_v3"] or head["name"]).strip()
    try:
        arguments, place = json_value_at(piece, head.end())
    except ValueError as error:
        return ToolCall(start, whole, name, error=str(error))
    end = END.match(piece, place)
    if not end:
        return ToolCall(start, whole, name, error=f"a call ends with {CALL_END}")
    return ToolCall(start, start + end.end(), name, arguments)


def write_deepseek(calls: Sequence[NamedArguments]) -> str:
    """Calls in the form of V3.1."""
    written = (
        f"{CALL}{name}{SEPARATOR}{json.dumps(arguments)}{CALL_END}" for name, arguments in calls
    )
    return f"{CALLS}{''.join(written)}{CALLS_END}"


DEEPSEEK = ToolFormat(
    "deepseek",
    parse_deepseek,
    markers=(CALLS,),
    prompt=PROMPT,
    write=write_deepseek,
    result_role="tool",
)
