"""JSON in tags, as Hermes 2 Pro, Qwen 2.5 and Qwen 3 write it; SmolLM2 has lists in the tags.

Source: the chat templates of NousResearch/Hermes-2-Pro-Llama-3-8B and Qwen/Qwen2.5-7B-Instruct, and
the prompt for function calling in the card of HuggingFaceTB/SmolLM2-1.7B-Instruct.
"""

import json
import re
from collections.abc import Iterator, Sequence

from grupo.core.call_markers import HERMES as MARKERS
from grupo.envs.tools.formats.call import (
    NamedArguments,
    ToolCall,
    ToolFormat,
    call_of_object,
    json_value,
    split_calls,
)

OPEN_TAG, CLOSE_TAG = MARKERS
OPENING = re.compile(re.escape(OPEN_TAG))

PROMPT = f"""# Tools

You may call these functions:
<tools>
{{tools}}
</tools>
Write each call as JSON: {OPEN_TAG}{{{{"name": ..., "arguments": {{{{...}}}}}}}}{CLOSE_TAG}"""


def parse_hermes(text: str) -> Iterator[ToolCall]:
    """Every call after the policy's thoughts.

    >>> text = 'So: <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
    >>> [(call.name, call.arguments) for call in parse_hermes(text)]
    [('add', {'a': 2})]
    """
    for start, limit in split_calls(text, OPENING):
        close = text.find(CLOSE_TAG, start, limit)
        if close < 0:
            yield ToolCall(start, limit, error=f"a call ends with {CLOSE_TAG}")
        else:
            yield from _read_calls(text, start, close)


def _read_calls(text: str, start: int, close: int) -> Iterator[ToolCall]:
    """The call between the tags that begin at these places, or those of a list."""
    end = close + len(CLOSE_TAG)
    try:
        value = json_value(text[start + len(OPEN_TAG) : close])
    except ValueError as error:
        yield ToolCall(start, end, error=str(error))
        return
    for call in value if isinstance(value, list) else [value]:
        yield call_of_object(call, start, end)


def write_hermes(calls: Sequence[NamedArguments]) -> str:
    """Calls in tags, one a line."""
    objects = ({"name": name, "arguments": arguments} for name, arguments in calls)
    return "\n".join(f"{OPEN_TAG}{json.dumps(value)}{CLOSE_TAG}" for value in objects)


HERMES = ToolFormat("hermes", parse_hermes, markers=(OPEN_TAG,), prompt=PROMPT, write=write_hermes)
