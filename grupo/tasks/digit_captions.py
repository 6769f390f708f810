"""Digits to be drawn, by their names: `seven`."""

from collections.abc import Sequence

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.core.types import Task
from grupo.tasks.base import key_of

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def digit_of(caption: str) -> int:
    """The digit that is named; refuses what names none.

    >>> digit_of("seven")
    7
    """
    if caption not in NAMES:
        raise Refused(f"prompt: {caption!r} names no digit. {nearest(caption, NAMES)}")
    return NAMES.index(caption)


@piece
class Digits:
    """The names of the ten digits, each a task."""

    def load(self) -> Sequence[Task]:
        return [Task(key_of(name), name, source="digits") for name in NAMES]
