"""Errors that a user reads, and the suggestions in their messages."""

from collections.abc import Iterable
from typing import ClassVar

from grupo.util.exit_codes import EXIT_CONFIG_ERROR, CommandError
from grupo.util.spelling import nearest
from grupo.util.terminal_text import one_line

MAX_LISTED = 40  # names in a message; a longer list would bury the message


class ConfigError(CommandError, ValueError):
    """Configuration that cannot work; the message names field, value and allowed values."""

    exit_code: ClassVar[int] = EXIT_CONFIG_ERROR


class MissingSignalError(KeyError):
    """A signal, a reward term or a column that was read but never measured."""

    def __str__(self) -> str:
        return str(self.args[0])


def suggest(name: str, allowed: Iterable[str]) -> str:
    """The end of an error message: the nearest allowed spelling of `name`, and all allowed names.

    >>> suggest("epslon", ["epsilon", "length"])
    "Did you mean 'epsilon'? Allowed: epsilon, length."
    """
    names = sorted(allowed)
    if not names:
        return "There is nothing to choose from."
    close = nearest(name, names)
    correction = f"Did you mean {close!r}? " if close else ""
    more = ", …" * (len(names) > MAX_LISTED)
    return f"{correction}Allowed: {', '.join(map(one_line, names[:MAX_LISTED]))}{more}."
