"""From a row of a table to a task."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.core.types import Observation, Task
from grupo.tasks.base import key_of


@piece
class Columns:
    """Which column of a row is what.

    Those of the answer and the source may be missing under their usual names; whatever else a row
    has is kept for reward functions to read.
    """

    prompt: str = "prompt"
    answer: str = "answer"
    source: str = "source"


USUAL = Columns()
NESTED = ("reward_model", "extra_info")


def task_of(row: Mapping[str, Any], columns: Columns, place: str, source: str = "") -> Task:
    """A row as a task: {"prompt": text or messages, …}, or verl's {"reward_model": {…}, …}.

    `place` says in messages which row it was. Every column but the prompt stays under its own
    name, so that a function written for the table finds it.

    >>> task_of({"prompt": "2 + 2 =", "answer": "4", "level": 1}, Columns(), "row 1").columns
    {'answer': '4', 'level': 1}
    """
    plain = {name: _plain(name, value) for name, value in row.items()}
    known = {**_as_verl(plain), **plain}
    for field in fields(columns):
        _require(getattr(columns, field.name), field.name, known, place)
    prompt = _prompt(known[columns.prompt], f"{place}, column {columns.prompt!r}")
    answer, source = known.get(columns.answer), str(known.get(columns.source) or source)
    rest = {name: value for name, value in plain.items() if name != columns.prompt}
    return Task(key_of(prompt), prompt, answer, source, rest)


def _plain(name: str, value: Any) -> Any:
    """Parquet hands out arrays for lists, and verl's nested columns as JSON text at times."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(name, value.tolist())
    if isinstance(value, list | tuple):
        return [_plain("", v) for v in value]
    return _parsed(value) if isinstance(value, str) and name in NESTED else value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # not JSON: it stays the text it is


def _as_verl(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What verl calls the answer and the source, by our names."""
    judged = row.get("reward_model")
    if not isinstance(judged, Mapping) or "ground_truth" not in judged:
        return {}
    return {"answer": judged["ground_truth"], "source": row.get("data_source", "")}


def _require(name: str, role: str, row: Mapping[str, Any], place: str) -> None:
    optional = role != "prompt" and name == getattr(USUAL, role)
    if name not in row and not optional:
        raise Refused(
            f"{place} has no column {name!r} for the {role}; "
            f"say which it is with Columns({role}=…). {nearest(name, row)}"
        )


def _prompt(value: Any, place: str) -> Observation:
    chat = _parsed(value) if isinstance(value, str) and value.startswith("[{") else value
    if isinstance(chat, list) and chat and all(map(_is_message, chat)):
        return tuple(chat)
    if isinstance(value, str) and value.strip():
        return value
    raise Refused(
        f"{place} is {str(value)[:100]!r}, a {type(value).__name__}. "
        "Allowed: text that is not empty, or messages that have a role and a content."
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value
