"""A Python list of calls, as Llama 3.2 (1B, 3B) and Llama 4 write it: `[add(a=1), sub(b=2)]`.

Source: the prompt formats of Llama 3.2 and Llama 4, in Meta's model documentation.
"""

import re
from collections.abc import Iterator, Sequence

from grupo.core.call_markers import PYTHONIC as MARKERS
from grupo.envs.tools.formats.call import NamedArguments, ToolCall, ToolFormat
from grupo.envs.tools.formats.python_calls import (
    PythonCallError,
    python_list,
    read_python_call,
    write_python_call,
)

START_TAG, _ = MARKERS
BEGINS_CALLS = re.compile(rf"\s*(?:{re.escape(START_TAG)}\s*)?(?=\[\s*[A-Za-z_][\w.]*\()")
# strings, which may hold brackets, and brackets
TOKENS = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' r"'''(?:\\.|[^\\])*?'''|"
    r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'|[\[\](){}]",
    re.DOTALL,
)  # fmt: skip

PROMPT = """You may call these functions:

{tools}

To call functions, write nothing but a list: [func_name1(params_name1=value), func_name2()]"""


def parse_pythonic(text: str) -> Iterator[ToolCall]:
    """The calls of a text that begins with a list of calls; any other text has none.

    >>> [(call.name, call.arguments) for call in parse_pythonic("[add(a=1), now()]")]
    [('add', {'a': 1}), ('now', {})]
    """
    beginning = BEGINS_CALLS.match(text)
    if not beginning:
        return
    start = beginning.end()
    end = _end_of_list(text, start)
    if end is None:
        yield ToolCall(start, len(text), error="a list of calls ends with ]")
        return
    try:
        nodes = python_list(text[start:end])
    except PythonCallError as error:
        yield ToolCall(start, end, error=str(error))
        return
    for node in nodes:
        yield read_python_call(node, start, end)


def _end_of_list(text: str, start: int) -> int | None:
    """Where the list ends whose bracket is at `start`; None if it does not end."""
    depth = 0
    for token in TOKENS.finditer(text, start):
        if token[0] in "[({":
            depth += 1
        elif token[0] in "])}":
            depth -= 1
        if not depth:
            return token.end()
    return None


def write_pythonic(calls: Sequence[NamedArguments]) -> str:
    """Calls in one list."""
    return f"[{', '.join(write_python_call(*call) for call in calls)}]"


PYTHONIC = ToolFormat(
    "pythonic", parse_pythonic, markers=("[func_name1(",), prompt=PROMPT, write=write_pythonic
)
