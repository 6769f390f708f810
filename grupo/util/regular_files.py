"""Reading of files that users name: regular ones only, and no more bytes than a limit allows."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from grupo.util.errors import ConfigError
from grupo.util.limits import Limit

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_BLOCK = 2**20
KERNEL_FOLDERS = ("/proc/", "/sys/")  # their files state no size, and some have no end


def open_regular_file(path: Path) -> int:
    """The descriptor of a regular file, opened for reading.

    Opening neither waits for the other end of a named pipe nor moves a device.

    Args:
        path: The file; a symbolic link is followed.

    Raises:
        OSError: There is no such file, or it cannot be opened.
        ConfigError: It is a folder, a named pipe, a socket, a device or a file of the kernel.
    """
    check_regular_file(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)  # it may have been replaced since
    except ConfigError:
        os.close(descriptor)
        raise
    return descriptor


def check_file_size(path: Path, limit: Limit) -> None:
    """Raise `ConfigError` for a file with more bytes than a limit; a missing one passes."""
    if path.exists():
        _check_size(path, path.stat().st_size, limit)


def check_regular_file(path: Path) -> None:
    """Raise `ConfigError` for what `open_regular_file` does not open, which is left unopened.

    Args:
        path: The file; a symbolic link is followed.

    Raises:
        OSError: There is no such file.
        ConfigError: As for `open_regular_file`.
    """
    _check_kind(path, os.stat(path).st_mode)
    if os.path.realpath(path).startswith(KERNEL_FOLDERS):
        raise ConfigError(f"{_shown(path)} is a file of the kernel. Allowed: a regular file.")


def read_regular_file(path: Path, limit: Limit) -> bytes:
    """The bytes of a regular file; what is written to it meanwhile is not read.

    Args:
        path: The file; a symbolic link is followed.
        limit: The largest number of bytes.

    Raises:
        OSError: The file cannot be read.
        ConfigError: It is no regular file, or it is too large.
    """
    with open(open_regular_file(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _check_size(path, size, limit)
        return file.read(size)


def read_lines(file: BinaryIO, limit: Limit) -> Iterator[bytes]:
    """The lines of a file with their ends, which the last one may lack.

    Args:
        file: The file, opened with a name.
        limit: The largest number of bytes of a line; not one more is in memory.

    Raises:
        ConfigError: A line is too long; the message has its first byte.
    """
    begin = file.tell()
    while line := file.readline(limit.maximum + 1):
        if len(line) > limit.maximum:
            place = f"{_shown(Path(str(file.name)))}: the line from byte {begin:,} on"
            raise ConfigError(f"{place} is too long. Allowed: {limit.allowed}.")
        begin += len(line)
        yield line


def count_lines(path: Path) -> int:
    """The number of line ends of a regular file, counted in blocks; errors are those of opening."""
    with open(open_regular_file(path), "rb") as file:
        blocks = iter(lambda: file.read(_BLOCK), b"")
        return sum(block.count(b"\n") for block in blocks)


def _check_kind(path: Path, mode: int) -> None:
    """Raise `ConfigError` unless a mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "of an unknown kind")
        raise ConfigError(f"{_shown(path)} is {kind}. Allowed: a regular file.")


def _check_size(path: Path, size: int, limit: Limit) -> None:
    if size > limit.maximum:
        raise ConfigError(f"{_shown(path)} has {size:,} bytes. Allowed: {limit.allowed}.")


def _shown(path: Path) -> str:
    return repr(str(path)[:200])
