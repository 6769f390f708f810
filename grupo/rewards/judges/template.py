"""Prompts of judges: texts with placeholders such as {prompt}, {completion} and {answer}."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grupo.core.forms import fill
from grupo.core.message_content import content_text
from grupo.core.types import Observation, Task
from grupo.rewards.judges.base import Conversation
from grupo.util.errors import ConfigError, suggest

BOUNDARY = "boundary"  # replaced by digits that no inserted text contains


def conversation(system: str, prompt: str, values: Mapping[str, str]) -> Conversation:
    """The messages of a judge with the placeholders replaced.

    Args:
        system: Template of the system message; "" for none.
        prompt: Template of the user message.
        values: Text of every placeholder but {boundary}, which stands for 16 digits of a hash of
            the values: text between two of them cannot contain them, and so cannot end early.
    """
    digest = hashlib.sha256(json.dumps(sorted(values.items())).encode()).hexdigest()
    complete = {**values, BOUNDARY: digest[:16]}
    user = {"role": "user", "content": fill(prompt, complete)}
    return ({"role": "system", "content": fill(system, complete)}, user) if system else (user,)


def task_values(task: Task, names: Iterable[str]) -> dict[str, str]:
    """The text of those placeholders that the task has: {prompt}, {answer}, {source}, its columns.

    A value that is no text is written as JSON.
    """
    known = _known_values(task)
    return {name: _as_text(known[name]) for name in names if name in known}


def check_placeholders(
    field: str, names: Iterable[str], tasks: Sequence[Task], provided: Iterable[str]
) -> None:
    """Raise `ConfigError` for the first placeholder that a task has no value for.

    Args:
        field: The field of the template, for the message.
        names: The placeholders of the template.
        tasks: The tasks to check.
        provided: Placeholders that have a value for every task, such as {completion}.
    """
    needed = [name for name in names if name not in (BOUNDARY, *provided)]
    for task in tasks:
        known = _known_values(task)
        for name in needed:
            if name not in known:
                column = "reference answer" if name == "answer" else f"column {name!r}"
                hint = suggest(name, [*known, BOUNDARY, *provided])
                place = task.location or task.key
                raise ConfigError(f"{field}: {{{name}}}: task {place!r} has no {column}. {hint}")


def observation_text(observation: Observation) -> str:
    """The text of a prompt: of several messages with their roles, of a single one without.

    Images, videos and audio are <image>, <video> and <audio>.

    >>> observation_text(({"role": "user", "content": "2 + 2 ="},))
    '2 + 2 ='
    """
    if isinstance(observation, str):
        return observation
    contents = [_content_text(message["content"]) for message in observation]
    if len(contents) == 1:
        return contents[0]
    roles = [message["role"] for message in observation]
    return "\n\n".join(f"{role}: {text}" for role, text in zip(roles, contents, strict=True))


def _content_text(content: Any) -> str:
    """The text of parts; content of another form as JSON."""
    is_parts = isinstance(content, list | tuple) and all(isinstance(x, dict) for x in content)
    return content_text(content) if is_parts else _as_text(content)


def _known_values(task: Task) -> dict[str, Any]:
    answer = {} if task.reference_answer is None else {"answer": task.reference_answer}
    own = {"prompt": observation_text(task.prompt), "source": task.source, **answer}
    return {**task.columns, **own}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
