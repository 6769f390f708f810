"""Exit codes of the command line, by the kind of error that ended it."""

import errno
from typing import ClassVar

from grupo.util.out_of_memory import out_of_memory_message
from grupo.util.terminal_text import printable_message

EXIT_FAILED = 1  # a property of a method does not hold, or no rollout of a step could be scored
EXIT_UNEXPECTED = 1  # a bug: the traceback is shown
EXIT_CONFIG_ERROR = 2  # invalid input; nothing was started
EXIT_STOPPED = 3  # a run was stopped by an error; it can be resumed from its last checkpoint
EXIT_CORRUPT = 4  # files of a run are damaged
EXIT_BROKEN_PIPE = 141  # the reader of the output has ended, as `head` does: 128 + SIGPIPE
# errors of a disk or of its permissions rather than of the program
_DISK_ERRNOS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
)


class CommandError(Exception):
    """An error that ends a command with one message and an exit code of its own, no traceback."""

    exit_code: ClassVar[int] = EXIT_STOPPED

    def __str__(self) -> str:
        """The message as it is printed: control characters escaped, long values shortened."""
        return printable_message(super().__str__())


def exit_code(error: Exception) -> int:
    """The exit code of a command that ended with `error`.

    >>> exit_code(CommandError()), exit_code(OSError(errno.ENOSPC, "")), exit_code(KeyError())
    (3, 3, 1)
    >>> exit_code(MemoryError())
    3
    """
    if out_of_memory_message(error):
        return EXIT_STOPPED
    if isinstance(error, CommandError):
        return error.exit_code
    is_disk_error = isinstance(error, OSError) and error.errno in _DISK_ERRNOS
    return EXIT_STOPPED if is_disk_error else EXIT_UNEXPECTED


def error_message(error: Exception) -> str:
    """The message of a command that ended with `error`; a lack of memory is named as such."""
    return out_of_memory_message(error) or str(error)
