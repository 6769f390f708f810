"""The reward of countdown: an expression of given numbers that is the target."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, final_answer
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.util.errors import ConfigError

MAX_CHARS = 200
SIGNS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@component
class CountdownExpression(PerRolloutReward):
    """1 if the expression is the target and has each of the task's numbers once, else 0.

    The task's column `numbers` has the numbers, its reference answer is the target. An expression
    has + - * / and brackets; fractions are exact.

    Args:
        extract: Finds the expression in the rollout's text; no expression is wrong.

    >>> from grupo.core.types import Response
    >>> task = Task("k", "?", 24, columns={"numbers": [3, 8, 5, 5]})
    >>> texts = ("(3*8)+(5-5)", "3*8", "3*8+5-5+5-5", "3*8+5*5")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> CountdownExpression()(task, rollouts)
    [1.0, 0.0, 0.0, 0.0]
    """

    extract: Extractor = final_answer

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        if text is None or len(text) > MAX_CHARS:
            return 0.0
        try:
            tree = ast.parse(text.strip(), mode="eval").body
            numbers, value = sorted(_numbers(tree)), _value(tree)
        except (SyntaxError, ValueError, ZeroDivisionError, MemoryError, RecursionError):
            return 0.0
        given, target = _numbers_and_target(task)
        return float(numbers == sorted(given) and value == target)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without numbers, or whose target is no integer."""
        for task in tasks:
            _numbers_and_target(task)


def _numbers_and_target(task: Task) -> tuple[list[int], int]:
    numbers, target = task.columns.get("numbers"), reference_text(task)
    place = f"tasks: {task.location or task.key}"
    if not isinstance(numbers, list) or not numbers or not all(map(_is_int, numbers)):
        raise ConfigError(
            f"{place}, column 'numbers': {str(numbers)[:80]!r}. Allowed: a list of integers."
        )
    try:
        return numbers, int(target)
    except ValueError:
        raise ConfigError(
            f"{place}: the reference answer {target[:80]!r}. Allowed: an integer."
        ) from None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _numbers(node: ast.expr) -> Iterator[int]:
    """The numbers of an expression; raises `ValueError` for other parts than numbers and signs."""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield from _numbers(node.left)
        yield from _numbers(node.right)
    else:
        yield _number(node)


def _value(node: ast.expr) -> Fraction:
    """The value of an expression that `_numbers` accepts."""
    if isinstance(node, ast.BinOp):
        return SIGNS[type(node.op)](_value(node.left), _value(node.right))
    return Fraction(_number(node))


def _number(node: ast.expr) -> int:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{ast.dump(node)[:80]} is neither a number nor a sign")
