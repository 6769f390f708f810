"""Demonstrations from the columns of a row, in the formats that TRL's SFTTrainer reads.

`messages` is a conversation, `prompt` with `completion` a prompt and its answer, and `text` a text
without a prompt. `solution` is an answer to the prompt, as `completion` is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.demonstration import Answer, Demonstration
from grupo.core.types import Message, Observation, Task
from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import parse_json

MESSAGES = "messages"
COMPLETION = "completion"
SOLUTION = "solution"
TEXT = "text"
TOOLS = "tools"
COLUMNS = (MESSAGES, COMPLETION, SOLUTION, TEXT)  # of demonstrations, the first that a row has
Turns = tuple[tuple[Observation, Answer], ...]


def task_demonstration(
    task: Task, column: str = "", *, assistant_only: bool = True
) -> Demonstration | None:
    """The demonstration of a task; None if the task has no column of one.

    Args:
        task: The task. Its prompt precedes the answers of any column.
        column: Column of the answer; "" is the first of `messages`, `completion`, `solution` and
            `text` that the task has.
        assistant_only: Of `messages`, the assistant's are trained on; otherwise all tokens are.

    Raises:
        ConfigError: The column's value is no demonstration.

    >>> task_demonstration(Task("sum", "2 + 2 =", columns={"completion": " 4"})).turns
    (('2 + 2 =', ' 4'),)
    """
    names = [column] if column else COLUMNS
    name = next((name for name in names if task.columns.get(name) is not None), "")
    if not name:
        return None
    value = task.columns[name]
    place = f"{task.location or f'task {task.key}'}, column {name!r}"
    tools = parse_tools(task.columns.get(TOOLS), task.location)
    if name == TEXT:
        return Demonstration((("", _require_text(value, place)),), all_tokens=True)
    if name == MESSAGES:
        messages = parse_messages(value, place)
        turns = conversation_turns(messages, place)
        return Demonstration(_with_prompt(turns, task.prompt), tools, not assistant_only)
    return Demonstration(completed_turns(task.prompt, value, place), tools)


def conversation_turns(messages: Sequence[Message], place: str) -> Turns:
    """The turns of a conversation: each answer of the assistant with the messages before it.

    Args:
        messages: The messages, which end with the assistant's.
        place: Names the messages in errors, such as "rows.jsonl, line 3, column 'messages'".

    Raises:
        ConfigError: The last message is not the assistant's, the first one is, one follows another
            of the assistant, or one of the assistant is empty.

    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    >>> [(len(observation), answer["content"]) for observation, answer in
    ...  conversation_turns(chat, "line 1")]
    [(1, 'Hello')]
    """
    if messages[-1]["role"] != "assistant":
        raise ConfigError(
            f"{place}: the last message is of the role {messages[-1]['role']!r}. Allowed: the"
            " assistant's, which is trained on. Mend the row, or remove it."
        )
    conversation_prompt(messages, place)
    turns: list[tuple[Observation, Answer]] = []
    before: list[Message] = []
    for number, message in enumerate(messages, 1):
        if message["role"] != "assistant":
            before.append(message)
            continue
        if not before:
            raise ConfigError(
                f"{place}: messages {number - 1} and {number} are the assistant's. Allowed: an"
                " answer to other messages before it. Mend the row, or remove it."
            )
        _check_answer(message, f"{place}, message {number}")
        turns.append((tuple(before), message))
        before = []
    return tuple(turns)


def conversation_prompt(messages: Sequence[Message], place: str) -> tuple[Message, ...]:
    """The messages before the first one of the assistant.

    Raises:
        ConfigError: The first message is the assistant's.
    """
    roles = [message["role"] for message in messages]
    end = roles.index("assistant") if "assistant" in roles else len(roles)
    if not end:
        raise ConfigError(
            f"{place}: message 1 is the assistant's. Allowed: an answer to messages before it. Mend"
            " the row, or remove it."
        )
    return tuple(messages[:end])


def completed_turns(prompt: Observation, completion: Any, place: str) -> Turns:
    """The turns of a prompt and its completion, a text or a list of messages.

    Args:
        prompt: The prompt; all of its messages are context, also those of the assistant.
        completion: A text, or messages that end with the assistant's.
        place: Names the completion in errors.

    Raises:
        ConfigError: The completion is empty, or no such value.

    >>> completed_turns("2 + 2 =", " 4", "line 1")
    (('2 + 2 =', ' 4'),)
    """
    value = _parse_list(completion)
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        messages = parse_messages(value, place)
        context = _as_messages(prompt)
        turns = conversation_turns((*_PLACEHOLDER, *messages), place)
        (first, answer), *rest = turns
        return ((*context, *_as_messages(first)[len(_PLACEHOLDER) :]), answer), *rest
    text = value if isinstance(value, str) else _number_text(value)
    return ((prompt, _require_text(text, place)),)


def parse_messages(value: Any, place: str) -> tuple[Message, ...]:
    """The messages of a column, a list or its JSON text.

    Raises:
        ConfigError: The value is no list of messages, each with a role.
    """
    messages = _parse_list(value)
    if (
        not isinstance(messages, list | tuple)
        or not messages
        or not all(map(_is_message, messages))
    ):
        raise ConfigError(
            f"{place} is {str(value)[:100]!r}. Allowed: messages such as"
            ' [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}].'
            " Mend the row, or remove it."
        )
    # tables of columns give every message the keys of all, with None where it has none
    return tuple({k: v for k, v in m.items() if v is not None or k == "content"} for m in messages)


def parse_tools(value: Any, location: str) -> tuple[Mapping[str, Any], ...]:
    """The descriptions of tools of a column, a list or its JSON text; none if the value is empty.

    Raises:
        ConfigError: The value is no list of objects.
    """
    tools = _parse_list(value) or ()
    if isinstance(tools, str) or not all(isinstance(tool, Mapping) for tool in tools):
        raise ConfigError(
            f"{location or 'task'}, column {TOOLS!r} is {str(value)[:100]!r}. Allowed: a list of"
            ' functions such as [{"type": "function", "function": {"name": "add"}}].'
        )
    return tuple(tools)


def require_demonstrations(tasks: Sequence[Task], column: str) -> None:
    """Raise `ConfigError` unless all tasks have a column of a demonstration.

    Args:
        tasks: The tasks.
        column: As in `task_demonstration`.
    """
    wanted = [column] if column else COLUMNS
    without = [task for task in tasks if all(task.columns.get(name) is None for name in wanted)]
    if not without:
        return
    names = ", ".join(map(repr, wanted))
    known = dict.fromkeys(name for task in tasks for name in task.columns)
    if len(without) == len(tasks):
        hint = suggest(column, known) if column else f"The rows have: {', '.join(known) or 'none'}."
        raise ConfigError(
            f"tasks: no row has a demonstration. Allowed columns: {names}. {hint} Another one is"
            " named by --method \"sft(column='NAME')\"."
        )
    first = without[0].location or f"task {without[0].key}"
    raise ConfigError(
        f"tasks: {len(without)} of {len(tasks)} rows have no demonstration, the first one is"
        f" {first}. Allowed columns: {names}. Mend the rows, or remove them."
    )


# a conversation cannot begin with an answer, but a completion does
_PLACEHOLDER: tuple[Message, ...] = ({"role": "user", "content": ""},)


def _with_prompt(turns: Turns, prompt: Observation) -> Turns:
    """The turns, the first of which answers the task's prompt: it may have been shortened."""
    (first, answer), *rest = turns
    is_first = not isinstance(prompt, str) and len(prompt) == len(first)
    return ((prompt if is_first else first, answer), *rest)


def _check_answer(message: Message, place: str) -> None:
    content = message.get("content")
    has_text = bool(content.strip()) if isinstance(content, str) else bool(content)
    if not has_text and not message.get("tool_calls"):
        raise ConfigError(
            f"{place} is the assistant's and empty. Allowed: text, or calls of tools. Mend the"
            " row, or remove it."
        )


def _require_text(value: Any, place: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ConfigError(
        f"{place} is {str(value)[:100]!r}. Allowed: text that is not empty. Mend the row, or"
        " remove it."
    )


def _number_text(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _as_messages(prompt: Observation) -> tuple[Message, ...]:
    return ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt


def _parse_list(value: Any) -> Any:
    """The list of a JSON text; other values as they are."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[{", "[]")):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)
