"""Lines of plain text, as ReAct prompts ask for them: Yao et al. 2022, arXiv 2210.03629.

It is for models that were trained on no format of calls. The input is JSON: tools have arguments.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from grupo.envs.tools.formats.call import NamedArguments, ToolCall, ToolFormat, json_value

STOP = "Observation:"
ACTION = re.compile(r"^[ \t]*Action:[ \t]*(?P<name>[^\n]*)", re.MULTILINE)
ACTION_INPUT = re.compile(r"\s*Action Input:[ \t]*(?P<arguments>.*)", re.DOTALL)

PROMPT = """You may call these functions:

{tools}

Answer in this form, which may repeat from Thought to Observation:
Thought: what to do next
Action: the name of a function
Action Input: its arguments as JSON, such as {{"name": "value"}}
Observation: the result, which is given to you
Thought: the answer is known now
Final Answer: the answer"""


def parse_react(text: str) -> Iterator[ToolCall]:
    """The actions up to the first observation: a text after it is the policy's own invention.

    >>> [call.arguments for call in parse_react('Action: add\\nAction Input: {"a": 2}')]
    [{'a': 2}]
    """
    text, _, _ = text.partition(STOP)
    for action, following in pairwise([*ACTION.finditer(text), None]):
        assert action
        limit = following.start() if following else len(text)
        yield _read_action(text[action.start() : limit].rstrip(), action)


def _read_action(piece: str, action: re.Match[str]) -> ToolCall:
    """The call in a piece of the text that begins with the action."""
    start, name = action.start(), action["name"].strip()
    span = start, start + len(piece)
    action_input = ACTION_INPUT.match(piece, action.end() - start)
    if not action_input:
        return ToolCall(*span, name, error="the line Action Input follows Action")
    try:
        return ToolCall(*span, name, json_value(action_input["arguments"]))
    except ValueError as error:
        return ToolCall(*span, name, error=str(error))


def observation(result: str) -> str:
    """A result after the word at which the policy has stopped."""
    return f" {result}\n"


def write_react(calls: Sequence[NamedArguments]) -> str:
    """Two lines for each call."""
    lines = (f"Action: {name}\nAction Input: {json.dumps(args)}" for name, args in calls)
    return "\n".join(lines)


REACT = ToolFormat(
    "react",
    parse_react,
    prompt=PROMPT,
    result=observation,
    write=write_react,
    stop_strings=(STOP,),
)
