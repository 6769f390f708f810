"""Python in blocks of code, as Gemma 2 and Gemma 3 write it: a block named `tool_code`.

Gemma's chat templates neither describe tools nor have a role for their results: the prompt explains
the blocks, and a result is a block named `tool_output` in the user's next message. Source: the
function calling examples of the Gemma cookbook.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from grupo.envs.tools.formats.call import NamedArguments, ToolCall, ToolFormat
from grupo.envs.tools.formats.python_calls import (
    PythonCallError,
    python_expressions,
    read_python_call,
    write_python_call,
)

FENCE = "```"
BLOCK = re.compile(rf"{FENCE}tool_code\b(?P<code>.*?)(?P<end>{FENCE}|\Z)", re.DOTALL)

PROMPT = """You may call these Python functions:

{tools}

To call one, write a block of code, and wait for the block tool_output with its result:
```tool_code
name(argument=value)
```"""


def parse_gemma(text: str) -> Iterator[ToolCall]:
    """The calls in all blocks of code, one a line; `print` around a call is allowed.

    >>> text = "Let us see:\\n```tool_code\\nprint(add(a=1, b=2))\\n```"
    >>> [(call.name, call.arguments) for call in parse_gemma(text)]
    [('add', {'a': 1, 'b': 2})]
    """
    for block in BLOCK.finditer(text):
        if not block["end"]:
            yield ToolCall(*block.span(), error=f"a block of code ends with {FENCE}")
            continue
        try:
            nodes = python_expressions(block["code"])
        except PythonCallError as error:
            yield ToolCall(*block.span(), error=str(error))
            continue
        for node in nodes:
            yield read_python_call(_without_print(node), *block.span())


def _without_print(node: ast.expr) -> ast.expr:
    """The call inside of `print(...)`, or the expression itself."""
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[ast.Call() as call], keywords=[]):
            return call
    return node


def output_block(result: str) -> str:
    """A result in a block of code."""
    return f"{FENCE}tool_output\n{result}\n{FENCE}"


def write_gemma(calls: Sequence[NamedArguments]) -> str:
    """Calls in one block of code, one a line."""
    return "\n".join((f"{FENCE}tool_code", *(write_python_call(*call) for call in calls), FENCE))


GEMMA = ToolFormat(
    "gemma",
    parse_gemma,
    markers=("<start_of_turn>",),
    prompt=PROMPT,
    result=output_block,
    write=write_gemma,
)
