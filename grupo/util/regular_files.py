"""Reading of files that users name: regular ones only, and no more bytes than a limit allows."""

import os
import stat
from pathlib import Path

from grupo.util.errors import ConfigError
from grupo.util.limits import Limit

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular_file(path: Path) -> int:
    """The descriptor of a regular file, opened for reading.

    Opening neither waits for the other end of a named pipe nor moves a device.

    Args:
        path: The file; a symbolic link is followed.

    Raises:
        OSError: There is no such file, or it cannot be opened.
        ConfigError: It is a folder, a named pipe, a socket or a device.
    """
    _check_regular(path, os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)  # it may have been replaced since
    except ConfigError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular_file(path: Path, limit: Limit) -> bytes:
    """The bytes of a regular file.

    Args:
        path: The file; a symbolic link is followed.
        limit: The largest number of bytes; not one more is read.

    Raises:
        OSError: The file cannot be read.
        ConfigError: It is no regular file, or it is too large.
    """
    with open(open_regular_file(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        # a file of the kernel states the size 0, and a file may grow while it is read
        data = file.read(limit.maximum + 1) if size <= limit.maximum else b""
    data = data or b""  # None of a file of the kernel that has nothing to read now
    if max(size, len(data)) > limit.maximum:
        more = f"more than {limit.maximum:,}" if size <= limit.maximum else f"{size:,}"
        raise ConfigError(f"{_shown(path)} has {more} bytes. Allowed: {limit.allowed}.")
    return data


def _check_regular(path: Path, mode: int) -> None:
    """Raise `ConfigError` unless a mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "of an unknown kind")
        raise ConfigError(f"{_shown(path)} is {kind}. Allowed: a regular file.")


def _shown(path: Path) -> str:
    return repr(str(path)[:200])
