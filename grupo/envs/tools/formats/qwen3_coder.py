"""Tags for the function and each parameter, as Qwen3-Coder, Qwen 3.5 and Nemotron 3 write them.

The tags `<tool_call>` around a call may be missing, as vLLM allows, too: Qwen3-Coder omits them at
times. Source: the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct.
"""

import re
from collections.abc import Iterator, Sequence

from grupo.envs.tools.formats.call import NamedArguments, ToolCall, ToolFormat, split_calls
from grupo.envs.tools.formats.text_calls import TextCallForm, argument_text, typed_arguments

OPENING = re.compile(r"<tool_call>(?:\s*<function=)?|<function=")
ALLOWED = "<function=name><parameter=key>value</parameter></function>"
FORM = TextCallForm(
    head=re.compile(r"(?:<tool_call>\s*)?<function=(?P<name>[^<>\n]+)>"),
    argument=re.compile(
        r"\s*<parameter=(?P<name>[^<>\n]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL
    ),
    end=re.compile(r"\s*</function>(?:\s*</tool_call>)?"),
    allowed=ALLOWED,
)

PROMPT = """# Tools

You may call these functions:
<tools>
{tools}
</tools>
Write each call in this form:
<tool_call>
<function=name>
<parameter=key>
value
</parameter>
</function>
</tool_call>"""


def parse_qwen3_coder(text: str) -> Iterator[ToolCall]:
    """Every call after the policy's thoughts, with the arguments as text.

    >>> text = "<tool_call><function=add><parameter=a>2</parameter></function></tool_call>"
    >>> [(call.name, call.arguments) for call in parse_qwen3_coder(text)]
    [('add', {'a': '2'})]
    """
    for start, limit in split_calls(text, OPENING):
        yield FORM.read(text, start, limit)


def write_qwen3_coder(calls: Sequence[NamedArguments]) -> str:
    """Calls in tags, with every tag and value on a line of its own."""
    return "\n".join(_write_call(*call) for call in calls)


def _write_call(name: str, arguments: dict[str, object]) -> str:
    parameters = "".join(
        f"<parameter={key}>\n{argument_text(value)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


QWEN3_CODER = ToolFormat(
    "qwen3_coder",
    parse_qwen3_coder,
    markers=("<function=",),
    prompt=PROMPT,
    write=write_qwen3_coder,
    convert=typed_arguments,
)
