"""Preference data: rows with a chosen and a rejected answer, or with an answer and a label.

An answer is a text, or the messages after the prompt. The prompt of a row may be left out: it is
then the beginning that the two answers share.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.demonstration import Demonstration
from grupo.core.types import Task
from grupo.core.validation import describe_task
from grupo.tasks.conversations import completed_turns, parse_tools
from grupo.util.errors import ConfigError

CHOSEN, REJECTED, LABEL, TOOLS = "chosen", "rejected", "label", "tools"


def answers_in(task: Task, column: str) -> tuple[Demonstration, ...]:
    """The answers in a column of a task: a text, a conversation, or a list of either.

    Args:
        task: The task, whose prompt precedes each answer.
        column: The column.

    Raises:
        ConfigError: The column is missing, or holds no answer that can be trained on.

    >>> answers_in(Task("k", "2 + 2 =", columns={"chosen": " 4"}), "chosen")[0].turns
    (('2 + 2 =', ' 4'),)
    """
    value = task.columns.get(column)
    if value is None:
        hint = (
            " Rows with one answer and a label are for the method bco and the sampler"
            " LabelledAnswers()."
        ) * (LABEL in task.columns)
        raise ConfigError(
            f"tasks: {describe_task(task)} has no {column!r}. Allowed: a text, or messages.{hint}"
        )
    tools = parse_tools(task.columns.get(TOOLS), task.location)
    place = f"{task.location or f'task {task.key}'}, column {column!r}"
    values = value if _is_list_of_answers(value) else [value]
    return tuple(Demonstration(completed_turns(task.prompt, x, place), tools) for x in values)


def label_of(task: Task, column: str) -> bool:
    """The label of a task's answer: whether it is a good one.

    Raises:
        ConfigError: The column is missing or has no truth value.

    >>> label_of(Task("k", "2 + 2 =", columns={"label": False}), "label")
    False
    """
    label = task.columns.get(column)
    if isinstance(label, bool | int | float) and label in (0, 1):
        return bool(label)
    hint = " Rows with a chosen and a rejected answer are for the sampler PreferencePairs()."
    shown = f"no {column!r}" if label is None else f"{str(label)[:60]!r} as its {column!r}"
    raise ConfigError(
        f"tasks: {describe_task(task)} has {shown}. Allowed: true or false."
        f"{hint * (CHOSEN in task.columns)}"
    )


def with_shared_prompt(row: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
    """The row with the beginning that `chosen` and `rejected` share as its prompt, if it has none.

    Of conversations that is every shared message, of texts every shared character; a space before
    the first difference belongs to the answers. A prompt in text beside conversations that begin
    alike repeats their beginning, and is replaced.

    Args:
        row: The row: values by column.
        prompt: Column of the prompt.

    >>> with_shared_prompt({"chosen": "Say: yes", "rejected": "Say: no"}, "prompt")
    {'chosen': ' yes', 'rejected': ' no', 'prompt': 'Say:'}
    """
    chosen: Any = row.get(CHOSEN)
    rejected: Any = row.get(REJECTED)
    both_text = isinstance(chosen, str) and isinstance(rejected, str)
    both_chats = _is_conversation(chosen) and _is_conversation(rejected)
    is_implicit = row.get(prompt) is None or (both_chats and isinstance(row[prompt], str))
    if not is_implicit or not (both_text or both_chats):
        return row
    size = _shared_length(chosen, rejected)
    if both_text and chosen[size - 1 : size] == " ":
        size -= 1
    if not size:
        return row
    changed = {CHOSEN: chosen[size:], REJECTED: rejected[size:], prompt: chosen[:size]}
    return {**row, **changed}


def _shared_length(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Number of equal items, or characters, with which both begin."""
    pairs = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


def _is_conversation(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_message, value))


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and "role" in value


def _is_list_of_answers(value: object) -> bool:
    """True for a list of texts or of conversations, which is not a conversation itself."""
    return isinstance(value, list | tuple) and bool(value) and not _is_message(value[0])
