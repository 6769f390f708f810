"""Functions between a Gymnasium environment's observations and actions and the policy's texts."""

import ast
from typing import Any

import numpy as np

from grupo.core.component import component
from grupo.util.errors import ConfigError

SIGNIFICANT_DIGITS = 4


def render_numbers(observation: Any) -> str:
    """The default rendering: a text as it is, numbers in one line with 4 significant digits.

    >>> render_numbers(np.array([0.027395, -1.0])), render_numbers((14, 10, False))
    ('0.02739 -1', '14 10 0')
    """
    if isinstance(observation, str):
        return observation
    if isinstance(observation, dict):
        return "\n".join(f"{name}: {render_numbers(x)}" for name, x in observation.items())
    if isinstance(observation, tuple):
        return " ".join(map(render_numbers, observation))
    numbers = np.asarray(observation).ravel().tolist()
    return " ".join(f"{float(number):.{SIGNIFICANT_DIGITS}g}" for number in numbers)


def parse_numbers(text: str) -> Any:
    """The default parser: a whole number, or the numbers of an array as a Python list.

    Raises:
        ValueError: The text is neither.

    >>> parse_numbers(" 2"), parse_numbers("[0.5, -1]")
    (2, array([ 0.5, -1. ], dtype=float32))
    """
    try:
        value = ast.literal_eval(text.strip())
        return value if isinstance(value, int) else _array(value)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{text!r} is no number") from error


def _array(value: Any) -> Any:
    numbers = np.asarray(value)
    return numbers if numbers.dtype.kind == "i" else numbers.astype(np.float32)


@component
class ActionNames:
    """Parser of actions by name: the action's number is the place of the name.

    Args:
        names: Names of the actions 0, 1, …

    >>> ActionNames(("left", "right"))(" right\\n")
    1
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) < len(self.names):
            raise ConfigError(f"names: {self.names}. Allowed: at least one, no name twice.")

    def __call__(self, text: str) -> int:
        return self.names.index(text.strip())
