"""A tool call in the policy's text, and the format that finds it there."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

# "auto" stands for the format of the policy's chat template
FormatName = Literal[
    "auto", "harmony", "mistral", "qwen3_coder", "glm", "hermes", "llama", "pythonic", "deepseek",
    "functiongemma", "phi4_mini", "gemma", "react",
]  # fmt: skip
END_OF_THOUGHT = "</think>"
DECODER = json.JSONDecoder()
CALL_ID = re.compile(r"[A-Za-z0-9]{9}")  # Mistral's template accepts no other


@dataclass(frozen=True)
class ToolCall:
    """A call in a text, or an attempt at one.

    Args:
        start: The first character of the call in the text.
        end: The character after its last one.
        name: Name of the tool; "" if it cannot be read.
        arguments: The arguments; a dict, where the call is as it should be.
        error: Why the call cannot be read; "" if it can.
        call_id: The identifier that the policy gave the call; "" if it gave none.
    """

    start: int
    end: int
    name: str = ""
    arguments: Any = None
    error: str = ""
    call_id: str = ""


NamedArguments = tuple[str, Any]  # name of a tool, and the arguments of a call


def write_json(calls: Sequence[NamedArguments]) -> str:
    """Calls as objects of JSON, one a line."""
    objects = ({"name": name, "arguments": arguments} for name, arguments in calls)
    return "\n".join(map(json.dumps, objects))


def unchanged(arguments: Any, schema: Mapping[str, Any]) -> Any:
    """The arguments of a call in a format that writes their types."""
    return arguments


@dataclass(frozen=True)
class ToolFormat:
    """A form of tool calls in texts: which models write it, and how it is read.

    Args:
        name: The format's name in a `Toolbox`.
        parse: Returns the calls in the text of one turn, in order.
        markers: Texts of which one occurs in the chat templates of models that write the format; ()
            if no template has any.
        prompt: The description of the tools for a prompt, where `{tools}` stands for their schemas,
            one a line; "" if only a chat template can describe them.
        result: A result as the policy reads it outside of a message that a chat template renders
            for a call.
        result_role: The role of results where the prompt describes the tools: that of a chat
            template which renders results, or else "user".
        write: The text of the calls of an earlier answer, where the prompt describes the tools.
        content: The text of an answer without its calls, as a reader is to see it.
        convert: The arguments of a call in the types that the tool's schema names; formats that
            write types leave them unchanged.
        stop_strings: Strings at which generation has to stop, or the policy would write results
            itself.
    """

    name: FormatName
    parse: Callable[[str], Iterator[ToolCall]]
    markers: tuple[str, ...] = ()
    prompt: str = ""
    result: Callable[[str], str] = str
    result_role: Literal["user", "tool"] = "user"
    write: Callable[[Sequence[NamedArguments]], str] = write_json
    content: Callable[[str], str] = str
    convert: Callable[[Any, Mapping[str, Any]], Any] = unchanged
    stop_strings: tuple[str, ...] = ()


def split_calls(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where each call after the policy's thoughts begins, and where the next one does.

    Args:
        text: The text of one turn.
        opening: The beginning of a call.

    >>> list(split_calls("<call>1?</think>Yes: <call>2 <call>3", re.compile("<call>")))
    [(21, 29), (29, 36)]
    """
    thoughts = text.rfind(END_OF_THOUGHT)
    starts = [match.start() for match in opening.finditer(text, max(thoughts, 0))]
    return pairwise([*starts, len(text)])


def json_value(text: str) -> Any:
    """The value of a JSON text; raises ValueError, which says why there is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def json_value_at(text: str, place: int) -> tuple[Any, int]:
    """The JSON value that begins at a place of a text, and its end; raises ValueError."""
    try:
        return DECODER.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def call_of_object(value: Any, start: int, end: int, key: str = "arguments") -> ToolCall:
    """The call that a JSON value describes."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return ToolCall(start, end, error=f'Allowed: {{"name": ..., "{key}": {{...}}}}')
    call_id = valid_call_id(value.get("id"))
    return ToolCall(start, end, value["name"], value.get(key, {}), call_id=call_id)


def valid_call_id(value: object) -> str:
    """The identifier that the policy gave a call; "" if it has not the form of one."""
    return value if isinstance(value, str) and CALL_ID.fullmatch(value) else ""
