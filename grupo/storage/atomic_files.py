"""Files that survive a crash: every change is made durable before the next one leans on it.

Names that begin with "tmp." are unfinished, and nobody reads them.
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
    """What a file held when it was written."""

    size: int  # in bytes
    sha256: str


def write_new(
    path: Path,
    chunks: Iterable[bytes | memoryview],
    *,
    syscall: SyscallHook = direct_call,
    point_prefix: str = "file",
) -> FileDigest:
    """Write a file that does not exist yet, durably; its name is durable after `fsync_dir`.

    An error of fsync is final: the system may have dropped what it could not write, and a second
    fsync would report success.
    """
    size, digest = 0, hashlib.sha256()
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
    """Replace a file: whoever reads it, now or after a crash, sees the old text or the new one."""
    fresh = path.with_name(f"tmp.{uuid4().hex}")
    write_new(fresh, [text.encode()], syscall=syscall, point_prefix=point_prefix)
    syscall(os.replace, fresh, path)
    kill_point(f"{point_prefix}/renamed")
    fsync_dir(path.parent, syscall)


def fsync_dir(path: Path, syscall: SyscallHook = direct_call) -> None:
    """Make the names in a folder durable: what was created, renamed and removed there."""
    with open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY, syscall) as file:
        syscall(os.fsync, file)


def make_folder(path: Path, syscall: SyscallHook = direct_call) -> None:
    """Make a folder and those above it, durably; one that exists is left alone."""
    if not path.is_dir():
        make_folder(path.parent, syscall)
        syscall(os.mkdir, path)
        fsync_dir(path.parent, syscall)


def remove(path: Path, syscall: SyscallHook = direct_call) -> None:
    """Remove a file, or a folder and all that it holds."""
    if path.is_symlink() or not path.is_dir():
        syscall(os.unlink, path)
    else:
        for inner in sorted(path.iterdir()):
            remove(inner, syscall)
        syscall(os.rmdir, path)


def remove_unfinished(folder: Path, syscall: SyscallHook = direct_call) -> None:
    """Remove what was left unfinished in a folder."""
    for path in sorted(folder.glob("tmp.*")):
        remove(path, syscall)


@component
class Journal:
    """A file of JSON lines that only grows, and can be cut back to a length it once had.

    Nothing is buffered here: what was appended is seen by every reader at once, and survives a
    killed process; `fsync` makes it survive a power cut. One writer at a time.
    """

    path: Path
    syscall: SyscallHook = direct_call

    def append(self, *records: Mapping[str, Any]) -> None:
        """Add one line for each record; NaN is written as "NaN" (see `plain`).

        A write that fails part of the way is taken back, as far as the disk allows.
        """
        lines = "".join(f"{strict_json.to_json(record)}\n" for record in records).encode()
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            before = _append_offset(file, self.path)
            try:
                write_all(file, lines, self.syscall)
            except OSError:
                with suppress(OSError):  # what matters is why the write failed
                    self.syscall(os.ftruncate, file, before)
                raise

    def length(self) -> int:
        """In bytes; 0 where there is no file yet."""
        return self.path.stat().st_size if self.path.exists() else 0

    def fsync(self) -> None:
        """Make all lines durable, and the file's name with them."""
        with open_descriptor(self.path, _APPEND, self.syscall) as file:
            self.syscall(os.fsync, file)
        fsync_dir(self.path.parent, self.syscall)

    def read(self) -> tuple[list[Any], tuple[str, ...]]:
        """The records, and a note if the last line is torn: it is left out.

        A line that cannot be read anywhere else is refused by its number.
        """
        *lines, rest = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        whole = lines[:-1] if not rest and _is_torn(lines) else lines
        left_out = b"\n".join([*lines[len(whole) :], rest])
        note = f"{self.path}: line {len(whole) + 1} is torn, {len(left_out)} bytes left out"
        records = [_parse_record(line, number, self.path) for number, line in enumerate(whole, 1)]
        return records, (note,) if left_out else ()

    @staticmethod
    def truncate(path: Path, length: int, syscall: SyscallHook = direct_call) -> None:
        """Take a journal back to a recorded length, durably; what was appended since is gone."""
        with open_descriptor(path, _APPEND, syscall) as file:
            size = os.fstat(file).st_size
            if length and os.pread(file, 1, length - 1) != b"\n":
                raise ConfigError(
                    f"{path} is {size} bytes long and cannot be cut to {length}: no line ends "
                    "there. It is not the file whose length was recorded, or a part of it is lost."
                )
            syscall(os.ftruncate, file, length)
            syscall(os.fsync, file)
        fsync_dir(path.parent, syscall)


def _append_offset(file: int, path: Path) -> int:
    """Where the next line begins; a torn one before it would swallow it."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        raise ConfigError(
            f"{path} ends in a torn line. Cut it back first: Journal.cut(path, length)."
        )
    return size


def _is_torn(lines: Sequence[bytes]) -> bool:
    """Did a power cut leave a hole in the last line?"""
    return bool(lines) and b"\0" in lines[-1]


def _parse_record(line: bytes, number: int, path: Path) -> Any:
    try:
        return strict_json.from_json(line.decode())
    except ValueError as error:
        raise ConfigError(f"{path}, line {number}, cannot be read: {error}.") from error
