"""One error for everything that loading a user's file, function or data can raise."""

import re
import traceback
from collections.abc import Generator
from contextlib import contextmanager

from grupo.util.error_location import user_frames
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import CommandError

_LINE = re.compile(r", line \d+\)$")  # ends a message that has a line


@contextmanager
def loader_errors(subject: str) -> Generator[None]:
    """Turn whatever a loader raises into a `ConfigError` with its cause and the user's line.

    An interrupt stays an interrupt. A `ConfigError` keeps its message, with the user's line.

    Args:
        subject: The file, option or function that is loaded; begins the message.

    >>> with loader_errors("tasks.jsonl"):
    ...     {}["prompt"]
    Traceback (most recent call last):
    grupo.util.errors.ConfigError: tasks.jsonl: KeyError: 'prompt'
    """
    try:
        yield
    except ConfigError as error:
        line = _user_line(error)
        if not line or _LINE.search(str(error)):
            raise
        raise ConfigError(f"{subject}: {error}{line}") from error
    except (CommandError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # SystemExit and errors of a user's own among them
        raise ConfigError(f"{subject}: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """The type and the message of an error, and the line of the user's code that raised it."""
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    if isinstance(error, SyntaxError):
        return f"{lines[-1]} ({error.filename}, line {error.lineno})"
    return " ".join(" ".join(lines).split()) + _user_line(error)


def _user_line(error: BaseException) -> str:
    """The innermost line that is neither grupo's, a library's nor Python's; "" if there is none."""
    own = user_frames(error)
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
