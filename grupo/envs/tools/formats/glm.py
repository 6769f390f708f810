"""A name and tags for each argument, as GLM 4.5 to 4.7 write them.

Source: the chat templates of zai-org/GLM-4.5 and zai-org/GLM-4.6; that of GLM-4.7 has no line
breaks between the tags.
"""

import re
from collections.abc import Iterator, Sequence

from grupo.core.call_markers import HERMES
from grupo.envs.tools.formats.call import NamedArguments, ToolCall, ToolFormat, split_calls
from grupo.envs.tools.formats.text_calls import TextCallForm, argument_text, typed_arguments

OPEN_TAG, CLOSE_TAG = HERMES
OPENING = re.compile(re.escape(OPEN_TAG))
FORM = TextCallForm(
    head=re.compile(rf"{OPEN_TAG}\s*(?P<name>[^\s<>{{}}\[\]\"]+)"),
    argument=re.compile(
        r"\s*<arg_key>(?P<name>[^<>\n]*)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>",
        re.DOTALL,
    ),
    end=re.compile(rf"\s*{CLOSE_TAG}"),
    allowed=f"{OPEN_TAG}name<arg_key>key</arg_key><arg_value>value</arg_value>{CLOSE_TAG}",
)

PROMPT = """# Tools

You may call these functions:
<tools>
{tools}
</tools>
Write each call in this form:
<tool_call>name
<arg_key>key</arg_key>
<arg_value>value</arg_value>
</tool_call>"""


def parse_glm(text: str) -> Iterator[ToolCall]:
    """Every call after the policy's thoughts, with the arguments as text.

    >>> text = "<tool_call>add<arg_key>a</arg_key><arg_value>2</arg_value></tool_call>"
    >>> [(call.name, call.arguments) for call in parse_glm(text)]
    [('add', {'a': '2'})]
    """
    for start, limit in split_calls(text, OPENING):
        yield FORM.read(text, start, limit)


def write_glm(calls: Sequence[NamedArguments]) -> str:
    """Calls in tags, with every argument on lines of its own."""
    return "\n".join(_write_call(*call) for call in calls)


def _write_call(name: str, arguments: dict[str, object]) -> str:
    lines = [
        f"<arg_key>{key}</arg_key>\n<arg_value>{argument_text(value)}</arg_value>"
        for key, value in arguments.items()
    ]
    return "\n".join((f"{OPEN_TAG}{name}", *lines, CLOSE_TAG))


GLM = ToolFormat(
    "glm",
    parse_glm,
    markers=("<arg_key>",),
    prompt=PROMPT,
    write=write_glm,
    convert=typed_arguments,
)
