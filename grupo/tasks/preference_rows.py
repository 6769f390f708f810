"""Preference data: rows with a chosen and a rejected answer, or with an answer and a label.

An answer is a text, or the messages of a conversation after its prompt, of which the last one is
the policy's. The prompt of a row may be left out: it is then the beginning that the two answers
share.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.errors import ConfigError
from grupo.core.types import Message, Task
from grupo.core.validation import describe_task

CHOSEN, REJECTED = "chosen", "rejected"
ROLE, CONTENT = "role", "content"
MAX_SHOWN = 60  # characters of a value in a message
Turn = tuple[tuple[Message, ...], str]  # messages before an answer of the policy, and its text
Answer = tuple[Turn, ...]


def answers_in(task: Task, column: str) -> tuple[Answer, ...]:
    """The answers in a column of a task: a text, a conversation, or a list of either.

    Raises:
        ConfigError: The column is missing, or holds no answer that can be trained on.

    >>> answers_in(Task("k", "2 + 2 =", columns={"chosen": "4"}), "chosen")
    ((((), '4'),),)
    """
    value = task.columns.get(column)
    if value is None:
        raise ConfigError(
            f"tasks: {describe_task(task)} has no {column!r}. Allowed: a text, or messages."
            f"{_hint(task)}"
        )
    values = value if _is_list_of_answers(value) else [value]
    return tuple(_answer(task, column, one) for one in values)


def label_of(task: Task, column: str) -> bool:
    """The label of a task's answer: whether it is a good one.

    Raises:
        ConfigError: The column is missing or has no truth value.
    """
    label = task.columns.get(column)
    if label in (0, 1):  # also False and True
        return bool(label)
    hint = " Rows with a chosen and a rejected answer are for dpo and its kin." * (
        label is None and CHOSEN in task.columns
    )
    shown = "no" if label is None else f"{label!r} as its"
    raise ConfigError(
        f"tasks: {describe_task(task)} has {shown} {column!r}. Allowed: true or false.{hint}"
    )


def with_shared_prompt(row: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
    """The row with the beginning that `chosen` and `rejected` share as its prompt, if it has none.

    Of conversations that is every shared message, of texts every shared character; a space before
    the first difference belongs to the answers. A prompt in text beside conversations repeats their
    beginning, and is replaced.

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
    is_implicit = prompt not in row or (both_chats and isinstance(row[prompt], str))
    if not is_implicit or not (both_text or both_chats):
        return row
    size = _shared_length(chosen, rejected)
    if both_text and chosen[size - 1 : size] == " ":
        size -= 1
    changed = {CHOSEN: chosen[size:], REJECTED: rejected[size:], prompt: chosen[:size]}
    return {**row, **changed}


def _shared_length(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Number of equal items, or characters, with which both begin."""
    pairs = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


def _is_conversation(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_message, value))


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(ROLE), str) and CONTENT in value


def _is_list_of_answers(value: object) -> bool:
    """True for a list of texts or of conversations, which is not a conversation itself."""
    return isinstance(value, list | tuple) and bool(value) and not _is_message(value[0])


def _answer(task: Task, column: str, value: object) -> Answer:
    if isinstance(value, str) and value:
        return (((), value),)
    if isinstance(value, list | tuple) and _is_conversation(value):
        return _turns(task, column, value)
    shown = str(value)[:MAX_SHOWN]
    raise ConfigError(
        f"tasks: {describe_task(task)} has {shown!r} as its {column!r}. Allowed: a text that is not"
        ' empty, or messages such as [{"role": "assistant", "content": "Hi"}].'
    )


def _turns(task: Task, column: str, messages: Sequence[Message]) -> Answer:
    """The turns of a conversation, each of which the policy ends."""
    turns: list[Turn] = []
    before: list[Message] = []
    for message in messages:
        if message[ROLE] != "assistant":
            before.append(message)
            continue
        text = message[CONTENT]
        if not isinstance(text, str) or not text or (turns and not before):
            break
        turns.append((tuple(before), text))
        before = []
    else:
        if not before and not turns[0][0]:
            return tuple(turns)
    roles = ", ".join(str(message[ROLE]) for message in messages)
    raise ConfigError(
        f"tasks: {describe_task(task)} has messages of {roles} as its {column!r}. Allowed: messages"
        " with text, from the answer to the prompt to the policy's last one, in turn."
    )


def _hint(task: Task) -> str:
    has_label = "label" in task.columns
    return (
        " Rows with one answer and a label are for the method bco with the sampler"
        " LabelledAnswers()."
    ) * has_label
