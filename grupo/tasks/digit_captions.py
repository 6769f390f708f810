"""Tasks to draw a digit, with its name as the prompt: `seven`."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks.base import task_key
from grupo.util.errors import ConfigError, suggest

DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def parse_digit(caption: str) -> int:
    """The digit that a caption names; raises `ConfigError` if it names none.

    >>> parse_digit("seven")
    7
    """
    if caption not in DIGIT_NAMES:
        raise ConfigError(f"prompt: {caption!r} names no digit. {suggest(caption, DIGIT_NAMES)}")
    return DIGIT_NAMES.index(caption)


@component
class DigitTasks:
    """Ten tasks: the name of each digit."""

    def load(self) -> Sequence[Task]:
        return [Task(task_key(name), name, source="digits") for name in DIGIT_NAMES]
