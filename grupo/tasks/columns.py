"""Tasks from the rows of a table."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from grupo.core.component import component
from grupo.core.limits import COLUMNS
from grupo.core.template_options import with_template_kwargs
from grupo.core.types import Observation, Task
from grupo.tasks.base import task_key
from grupo.tasks.conversations import MESSAGES, TEXT, conversation_prompt, parse_messages
from grupo.tasks.media_rows import with_media
from grupo.tasks.preference_rows import with_shared_prompt
from grupo.tasks.row_sizes import check_texts
from grupo.tasks.template_column import template_kwargs
from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import check_depth, check_unicode, parse_json


@component
class Columns:
    """Names of the columns that become fields of a task.

    The default columns of answer and source may be missing. All other columns of a row are kept
    in `Task.columns` for reward functions.

    Args:
        prompt: Column of the prompt: text, or a list of messages.
        answer: Column of the reference answer.
        source: Column of the source's name.
    """

    prompt: str = "prompt"
    answer: str = "answer"
    source: str = "source"


DEFAULT_COLUMNS = Columns()
NESTED_COLUMNS = ("reward_model", "extra_info")


def task_from_row(
    row: Mapping[str, Any],
    columns: Columns,
    location: str,
    source: str = "",
    folder: Path = Path(),
) -> Task:
    """The task of a row, in a plain format or in verl's, {"reward_model": {…}, …}.

    Every column but the prompt is kept under its own name, so that reward functions written for
    the table find it. Without a column of the prompt, it is the beginning that `chosen` and
    `rejected` share, or the messages before the first answer in `messages`, and a row with a `text`
    has the prompt "". Images, videos and audio are read by `with_media`. The column
    `chat_template_kwargs` makes a prompt a chat, whose template receives these arguments.

    Args:
        row: The row: values by column.
        columns: The columns of prompt, answer and source.
        location: Names the row in error messages, such as "rows.jsonl, line 3".
        source: The task's source if the row has none.
        folder: Paths of images, videos and audio begin here, if they are relative.

    >>> task_from_row({"prompt": "2 + 2 =", "answer": "4", "level": 1}, Columns(), "row 1").columns
    {'answer': '4', 'level': 1}
    """
    _check_row(row, location)
    row = with_media(row, columns.prompt, location, folder)
    values_by_name = {name: _to_python(name, value) for name, value in row.items()}
    plain = with_shared_prompt(values_by_name, columns.prompt)
    values = {**_verl_fields(plain), **plain}
    if task := _task_without_prompt(plain, columns, location, source):
        return task
    for field in fields(columns):
        _require_column(getattr(columns, field.name), field.name, values, location)
    prompt = _parse_prompt(values[columns.prompt], f"{location}, column {columns.prompt!r}")
    prompt = with_template_kwargs(prompt, template_kwargs(plain, location))
    answer = values.get(columns.answer)
    source = str(values.get(columns.source) or source)
    others = {name: value for name, value in plain.items() if name != columns.prompt}
    return Task(task_key(prompt), prompt, answer, source, others, location=location)


def _task_without_prompt(
    row: Mapping[str, Any], columns: Columns, location: str, source: str
) -> Task | None:
    """The task of a row that has the column `messages` or `text` and no prompt; otherwise None."""
    if columns != DEFAULT_COLUMNS or columns.prompt in row:
        return None
    source = str(row.get(columns.source) or source)
    answer = row.get(columns.answer)
    if row.get(MESSAGES) is not None:
        place = f"{location}, column {MESSAGES!r}"
        prompt = conversation_prompt(parse_messages(row[MESSAGES], place), place)
        prompt = with_template_kwargs(prompt, template_kwargs(row, location))
        return Task(task_key(prompt), prompt, answer, source, row, location=location)
    if isinstance(text := row.get(TEXT), str):
        return Task(task_key(text), "", answer, source, row, location=location)
    return None


def _check_row(row: Mapping[str, Any], location: str) -> None:
    if len(row) > COLUMNS.maximum:
        raise ConfigError(f"{location} has {len(row):,} columns. Allowed: {COLUMNS.allowed}.")
    for name in row:
        if not isinstance(name, str):
            raise ConfigError(f"{location} has the column {name!r}. Allowed: a string.")
    try:
        check_depth(dict(row))
    except ValueError as error:
        raise ConfigError(f"{location} is {error}.") from error
    for name, value in row.items():
        check_texts(value, f"{location}, column {name!r}")


def _to_python(name: str, value: Any) -> Any:
    """The value without NumPy types; verl's nested columns are parsed if they are JSON text."""
    if isinstance(value, np.ndarray | np.generic):
        return _to_python(name, value.tolist())
    if isinstance(value, list | tuple):
        return [_to_python("", v) for v in value]
    return _parse_json(value) if isinstance(value, str) and name in NESTED_COLUMNS else value


def _parse_json(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def _verl_fields(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer and the source of a row in verl's format."""
    reward_model = row.get("reward_model")
    if not isinstance(reward_model, Mapping) or "ground_truth" not in reward_model:
        return {}
    return {"answer": reward_model["ground_truth"], "source": row.get("data_source", "")}


def _require_column(column: str, field_name: str, row: Mapping[str, Any], location: str) -> None:
    optional = field_name != "prompt" and column == getattr(DEFAULT_COLUMNS, field_name)
    if column not in row and not optional:
        separator = next((mark for mark in ";\t|" if any(mark in name for name in row)), "")
        if separator and len(row) == 1:
            raise ConfigError(
                f"{location} has one column, {next(iter(row))!r}. Allowed: commas between the"
                " values of a .csv file, and tabs in a .tsv file. Write the file again with one of"
                f" these in place of {separator!r}."
            )
        raise ConfigError(
            f"{location} has no column {column!r} for the {field_name}. Name it behind the source:"
            f" \"…({field_name}='COLUMN')\", in Python Columns({field_name}='COLUMN')."
            f" {suggest(column, row)}"
        )


def _parse_prompt(value: Any, location: str) -> Observation:
    chat = _parse_json(value) if isinstance(value, str) and value.startswith("[{") else value
    try:
        check_unicode(value)
    except ValueError as error:
        raise ConfigError(f"{location}: {error}.") from error
    if isinstance(chat, list | tuple) and chat and all(map(_is_message, chat)):
        return tuple(chat)
    if isinstance(value, str) and value.strip():
        return value
    raise ConfigError(
        f"{location} is {str(value)[:100]!r}, a {type(value).__name__}. "
        'Allowed: text that is not empty, or messages such as [{"role": "user", "content": "Hi"}].'
        " Mend the row, or remove it."
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value
