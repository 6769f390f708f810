"""Files that survive a crash: every change is durable before the next one depends on it.

Files and folders whose names begin with "tmp." are unfinished and never read.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.storage import strict_json
from grupo.storage.fault_injection import kill_point
from grupo.storage.syscalls import SyscallHook, direct_call, open_descriptor, write_all

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT


@component
class FileDigest:
    """Size in bytes and SHA-256 of a file as it was written."""

    size: int
    sha256: str


def write_new(
    path: Path,
    chunks: Iterable[bytes | memoryview],
    *,
    syscall: SyscallHook = direct_call,
    point_prefix: str = "file",
) -> FileDigest:
    """Write a new file durably; its name is durable only after `fsync_dir`.

    An error of fsync is final: the system may have dropped the pages that it could not write, and a
    second fsync would report success.

    Args:
        path: A file that does not exist yet.
        chunks: Its content.
        syscall: Makes the system calls; tests let some of them fail.
        point_prefix: Begins the names of the kill points.
    """
    size = 0
    digest = hashlib.sha256()
    with open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, syscall) as file:
        kill_point(f"{point_prefix}/opened")
        for chunk in chunks:
            write_all(file, chunk, syscall)
            digest.update(chunk)
            size += len(chunk)
        kill_point(f"{point_prefix}/written")
        syscall(os.fsync, file)
        kill_point(f"{point_prefix}/synced")
    return FileDigest(size, digest.hexdigest())


def write_atomically(
    path: Path, text: str, *, syscall: SyscallHook = direct_call, point_prefix: str = "file"
) -> None:
    """Replace a file atomically: a reader, even after a crash, gets the old text or the new one."""
    temporary = path.with_name(f"tmp.{uuid4().hex}")
    write_new(temporary, [text.encode()], syscall=syscall, point_prefix=point_prefix)
    syscall(os.replace, temporary, path)
    kill_point(f"{point_prefix}/renamed")
    fsync_dir(path.parent, syscall)


def fsync_dir(path: Path, syscall: SyscallHook = direct_call) -> None:
    """Make the names in a folder durable: files created, renamed and removed in it."""
    with open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY, syscall) as file:
        syscall(os.fsync, file)


def make_folder(path: Path, syscall: SyscallHook = direct_call) -> None:
    """Create a folder and its parents durably; existing ones are left alone."""
    if not path.is_dir():
        make_folder(path.parent, syscall)
        syscall(os.mkdir, path)
        fsync_dir(path.parent, syscall)


def remove(path: Path, syscall: SyscallHook = direct_call) -> None:
    """Remove a file, or a folder with its contents; links are not followed."""
    if path.is_symlink() or not path.is_dir():
        syscall(os.unlink, path)
    else:
        for inner in sorted(path.iterdir()):
            remove(inner, syscall)
        syscall(os.rmdir, path)


def remove_unfinished(folder: Path, syscall: SyscallHook = direct_call) -> None:
    """Remove the unfinished files and folders (`tmp.*`) in a folder."""
    for path in sorted(folder.glob("tmp.*")):
        remove(path, syscall)


@component
class Journal:
    """An append-only file of JSON lines, which can be truncated to a length it once had.

    Nothing is buffered here: appended lines are visible to every reader at once and survive a
    killed process; after `fsync` they survive a power cut. One writer at a time.
    """

    path: Path
    syscall: SyscallHook = direct_call

    def append(self, *records: Mapping[str, Any]) -> None:
        """Append one line per record; NaN is written as "NaN" (see `strict_json`).

        A write that fails halfway is undone as far as the disk allows.
        """
        lines = "".join(f"{strict_json.to_json(record)}\n" for record in records).encode()
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            offset = _append_offset(file, self.path)
            try:
                write_all(file, lines, self.syscall)
            except OSError:
                with suppress(OSError):  # the error of the write is the one to report
                    self.syscall(os.ftruncate, file, offset)
                raise

    def length(self) -> int:
        """Length in bytes; 0 if there is no file yet."""
        return self.path.stat().st_size if self.path.exists() else 0

    def fsync(self) -> None:
        """Make all lines and the file's name durable."""
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            self.syscall(os.fsync, file)
        fsync_dir(self.path.parent, self.syscall)

    def read(self) -> tuple[list[Any], tuple[str, ...]]:
        """The records, and a note if the last line is torn and was left out.

        Raises:
            ConfigError: Another line cannot be read; the message has its number.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, rest = content.split(b"\n")
        whole = lines[:-1] if not rest and _is_torn(lines) else lines
        torn = b"\n".join([*lines[len(whole) :], rest])
        note = f"{self.path}: line {len(whole) + 1} is torn, {len(torn)} bytes left out"
        records = [_parse_record(line, number, self.path) for number, line in enumerate(whole, 1)]
        return records, (note,) if torn else ()

    @staticmethod
    def truncate(path: Path, length: int, syscall: SyscallHook = direct_call) -> None:
        """Truncate a journal durably to a recorded length; lines appended since are lost."""
        with open_descriptor(path, _APPEND, syscall) as file:
            size = os.fstat(file).st_size
            if length and os.pread(file, 1, length - 1) != b"\n":
                raise ConfigError(
                    f"{path} is {size} bytes long and cannot be truncated to {length}: no line"
                    " ends there. It is another file than the recorded one, or a part is lost."
                )
            syscall(os.ftruncate, file, length)
            syscall(os.fsync, file)
        fsync_dir(path.parent, syscall)


def _append_offset(file: int, path: Path) -> int:
    """The offset of the next line; raises after a torn line, which would swallow it."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        raise ConfigError(
            f"{path} ends in a torn line. Truncate it first: Journal.truncate(path, length)."
        )
    return size


def _is_torn(lines: Sequence[bytes]) -> bool:
    """True if the last line has a hole of zero bytes, which a power cut may leave."""
    return bool(lines) and b"\0" in lines[-1]


def _parse_record(line: bytes, number: int, path: Path) -> Any:
    try:
        return strict_json.from_json(line.decode())
    except ValueError as error:
        raise ConfigError(f"{path}, line {number}, cannot be read: {error}.") from error
