"""From a row of a table to a task."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.types import Observation, Task
from grupo.tasks.base import task_key


@component
class Columns:
    """Which column of a row is what.

    Those of the answer and the source may be missing under their usual names; whatever else a row
    has is kept for reward functions to read.
    """

    prompt: str = "prompt"
    answer: str = "answer"
    source: str = "source"


DEFAULT_COLUMNS = Columns()
NESTED_COLUMNS = ("reward_model", "extra_info")


def task_from_row(
    row: Mapping[str, Any], columns: Columns, location: str, source: str = ""
) -> Task:
    """A row as a task: {"prompt": text or messages, …}, or verl's {"reward_model": {…}, …}.

    `place` says in messages which row it was. Every column but the prompt stays under its own
    name, so that a function written for the table finds it.

    >>> task_from_row({"prompt": "2 + 2 =", "answer": "4", "level": 1}, Columns(), "row 1").columns
    {'answer': '4', 'level': 1}
    """
    plain = {name: _to_python(name, value) for name, value in row.items()}
    known = {**_verl_fields(plain), **plain}
    for field in fields(columns):
        _require_column(getattr(columns, field.name), field.name, known, location)
    prompt = _parse_prompt(known[columns.prompt], f"{location}, column {columns.prompt!r}")
    answer, source = known.get(columns.answer), str(known.get(columns.source) or source)
    rest = {name: value for name, value in plain.items() if name != columns.prompt}
    return Task(task_key(prompt), prompt, answer, source, rest)


def _to_python(name: str, value: Any) -> Any:
    """Parquet hands out arrays for lists, and verl's nested columns as JSON text at times."""
    if isinstance(value, np.ndarray | np.generic):
        return _to_python(name, value.tolist())
    if isinstance(value, list | tuple):
        return [_to_python("", v) for v in value]
    return _parse_json(value) if isinstance(value, str) and name in NESTED_COLUMNS else value


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # not JSON: it stays the text it is


def _verl_fields(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What verl calls the answer and the source, by our names."""
    judged = row.get("reward_model")
    if not isinstance(judged, Mapping) or "ground_truth" not in judged:
        return {}
    return {"answer": judged["ground_truth"], "source": row.get("data_source", "")}


def _require_column(column: str, field_name: str, row: Mapping[str, Any], location: str) -> None:
    optional = field_name != "prompt" and column == getattr(DEFAULT_COLUMNS, field_name)
    if column not in row and not optional:
        raise ConfigError(
            f"{location} has no column {column!r} for the {field_name}; "
            f"say which it is with Columns({field_name}=…). {suggest(column, row)}"
        )


def _parse_prompt(value: Any, location: str) -> Observation:
    chat = _parse_json(value) if isinstance(value, str) and value.startswith("[{") else value
    if isinstance(chat, list) and chat and all(map(_is_message, chat)):
        return tuple(chat)
    if isinstance(value, str) and value.strip():
        return value
    raise ConfigError(
        f"{location} is {str(value)[:100]!r}, a {type(value).__name__}. "
        "Allowed: text that is not empty, or messages that have a role and a content."
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value
