"""Rewards for answers that are data: cells of a table, lists in order, outputs of programs."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.closed_answers import parse_number
from grupo.rewards.math_text import strip_delimiters
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

MAX_CHARS = 20_000
CODE_BLOCK = re.compile(r"```(?:json)?[ \t]*+\n?(.*?)```", re.DOTALL)
NO_DATA = object()


def last_json_block(text: str) -> str | None:
    r"""The content of the last block of code, or the whole text if it has no block.

    >>> last_json_block('So:\n```json\n{"output": 4}\n```')
    '{"output": 4}'
    """
    blocks = CODE_BLOCK.findall(text)
    if blocks:
        return blocks[-1].strip()
    return None if "```" in text else text.strip()


def unchanged(value: Any) -> Any:
    """The value itself: 'A' is not 'a'."""
    return value


def without_case(value: Any) -> Any:
    """The value with all its texts in lower case and without surrounding white space.

    >>> without_case([" Owl", {"a": "B"}])
    ['owl', {'a': 'b'}]
    """
    if isinstance(value, str):
        return value.strip().casefold()
    if isinstance(value, list):
        return [without_case(item) for item in value]
    if isinstance(value, dict):
        return {key: without_case(item) for key, item in value.items()}
    return value


@component
class SameData(PerRolloutReward):
    r"""1 if the extracted answer is the same data as the reference answer, else 0.

    Data are JSON or literals of Python: a list in order, a grid, the predicted input or output of a
    program. 1 is 1.0, but True is not 1.

    GURU, Cheng et al. (arXiv:2506.14965), scores ordering puzzles, ARC grids and Code I/O this way.

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong.
        normalize: Applied to both before they are compared: `unchanged` or `without_case`.

    >>> from grupo.core.types import Response
    >>> texts = "[1, 2]", "[2, 1]", "1 2"
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> SameData()(Task("k", "?", [1, 2]), rollouts)
    [1.0, 0.0, 0.0]
    """

    extract: Extractor = final_answer
    normalize: Callable[[Any], Any] = unchanged

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = parse_data(self.extract(rollout.text))
        truth = _reference_data(task)
        return float(answer is not NO_DATA and _same(self.normalize(answer), self.normalize(truth)))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no data."""
        for task in tasks:
            _reference_data(task)


@component
class CellShare(PerRolloutReward):
    r"""The share of the reference answer's cells that a table has in their places, from 0 to 1.

    A table is a list of rows, or an object with a list of "rows", in JSON or as literals of Python.
    A table of another shape scores 0, so that additional rows or cells earn nothing.

    GURU, Cheng et al. (arXiv:2506.14965), scores zebra puzzles this way; its code ignores
    additional rows and cells.

    Args:
        extract: Finds the answer in the rollout's text; no answer is wrong.

    >>> from grupo.core.types import Response
    >>> task = Task("k", "?", {"rows": [[1, "red", "cat"], [2, "blue", "dog"]]})
    >>> answer = '{"rows": [[1, "red", "dog"], [2, "blue", "cat"]]}'
    >>> CellShare()(task, [Rollout((("?", Response((), (), text=answer)),))])
    [0.6666666666666666]
    """

    extract: Extractor = final_answer

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        truth, rows = _reference_rows(task), _rows(parse_data(self.extract(rollout.text)))
        if [len(row) for row in rows] != [len(row) for row in truth]:
            return 0.0
        pairs = [
            (cell, true_cell)
            for row, true_row in zip(rows, truth, strict=True)
            for cell, true_cell in zip(row, true_row, strict=True)
        ]
        return sum(_same(cell, true_cell) for cell, true_cell in pairs) / len(pairs)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no table with a cell."""
        for task in tasks:
            _reference_rows(task)


@component
class AnswerList(PerRolloutReward):
    r"""1 if the answers of a list are those of the reference answer, in any order, else 0.

    Answers are separated: "3|1" is "1|3". Each is equal to its counterpart as a number or as text
    without case, and there are as many of both; a reference answer without a separator is one
    answer.

    GURU, Cheng et al. (arXiv:2506.14965), scores questions about tables this way.

    Args:
        separator: Text between two answers.
        extract: Finds the list in the rollout's text; no list is wrong.

    >>> from grupo.core.types import Response
    >>> texts = (r"\boxed{3|1}", "1|3|3", "1")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> AnswerList()(Task("k", "?", "1|3"), rollouts)
    [1.0, 0.0, 0.0]
    """

    separator: NonEmptyString = "|"
    extract: Extractor = final_answer

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None or len(text) > MAX_CHARS:
            return 0.0
        truth = sorted(map(_comparable, reference_text(task).split(self.separator)), key=repr)
        answers = sorted(map(_comparable, text.split(self.separator)), key=repr)
        return float(answers == truth)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a reference answer, or with an empty one."""
        for task in tasks:
            if not all(item.strip() for item in reference_text(task).split(self.separator)):
                raise ConfigError(
                    f"tasks: {task.location or task.key}: the reference answer"
                    f" {str(task.reference_answer)[:80]!r}. Allowed: answers, between two of them"
                    f" {self.separator!r}."
                )


def _comparable(text: str) -> float | str:
    """The number that a text is, or the text without case."""
    number = parse_number(text)
    return " ".join(strip_delimiters(text).casefold().split()) if number != number else number


def parse_data(text: Any) -> Any:
    """The value of a text in JSON or in literals of Python; `NO_DATA` if it is neither.

    >>> parse_data("[true, 2]"), parse_data("('a', 2)"), parse_data("a, 2") is NO_DATA
    ([True, 2], ['a', 2], True)
    """
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        return NO_DATA
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        return _as_lists(ast.literal_eval(text.strip()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return NO_DATA


def _as_lists(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_lists(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    return value


def _reference_data(task: Task) -> Any:
    """The reference answer as data; a text is parsed."""
    answer = task.reference_answer
    data = parse_data(answer) if isinstance(answer, str) else _as_lists(answer)
    if data is NO_DATA or data is None:
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer {str(answer)[:80]!r}."
            " Allowed: data, as values or in JSON."
        )
    return data


def _reference_rows(task: Task) -> list[list[Any]]:
    rows = _rows(_reference_data(task))
    if not any(rows):
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer"
            f" {str(task.reference_answer)[:80]!r}. Allowed: a list of rows, or an object with"
            " the list 'rows'; at least one cell."
        )
    return rows


def _rows(data: Any) -> list[list[Any]]:
    """The rows of a table; none if the data are no table."""
    rows: Any = data.get("rows") if isinstance(data, Mapping) else data
    is_table = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    return list(rows) if is_table else []


def _same(value: Any, truth: Any) -> bool:
    """True if the values are equal; True is not 1, at any depth."""
    if isinstance(value, list) and isinstance(truth, list):
        return len(value) == len(truth) and all(map(_same, value, truth))
    if isinstance(value, dict) and isinstance(truth, dict):
        return value.keys() == truth.keys() and all(_same(value[k], truth[k]) for k in truth)
    return value == truth and isinstance(value, bool) == isinstance(truth, bool)
