"""Files that survive a crash: every change is durable before the next one depends on it.

Files and folders whose names begin with "tmp." are temporary and never read.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from grupo.core.component import component
from grupo.core.ranges import Measured
from grupo.storage.fault_injection import kill_point
from grupo.storage.syscalls import SyscallHook, direct_call, open_descriptor, write_all
from grupo.util.regular_files import open_regular_file

_CHUNK_SIZE = 1 << 20


@component
class FileDigest:
    """Size in bytes and SHA-256 of a file as it was written."""

    size: Measured
    sha256: str


def write_new(
    path: Path,
    chunks: Iterable[bytes | memoryview],
    *,
    syscall: SyscallHook = direct_call,
    kill_point_prefix: str = "file",
) -> FileDigest:
    """Write a new file durably; its name is durable only after `fsync_dir`.

    An error of fsync is final: the system may have dropped the pages that it could not write, and a
    second fsync would report success.

    Args:
        path: A file that does not exist yet.
        chunks: Its content.
        syscall: Makes the system calls; tests let some of them fail.
        kill_point_prefix: Prefix of the names of the kill points.
    """
    size = 0
    digest = hashlib.sha256()
    with open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, syscall) as file:
        kill_point(f"{kill_point_prefix}/opened")
        for chunk in chunks:
            write_all(file, chunk, syscall)
            digest.update(chunk)
            size += len(chunk)
        kill_point(f"{kill_point_prefix}/written")
        syscall(os.fsync, file)
        kill_point(f"{kill_point_prefix}/synced")
    return FileDigest(size, digest.hexdigest())


def write_atomically(
    path: Path, text: str, *, syscall: SyscallHook = direct_call, kill_point_prefix: str = "file"
) -> None:
    """Replace a file atomically: a reader, even after a crash, gets the old text or the new one."""
    temporary = path.with_name(f"tmp.{uuid4().hex}")
    write_new(temporary, [text.encode()], syscall=syscall, kill_point_prefix=kill_point_prefix)
    syscall(os.replace, temporary, path)
    kill_point(f"{kill_point_prefix}/renamed")
    fsync_dir(path.parent, syscall)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(open_regular_file(path), "rb") as file:
        while chunk := file.read(_CHUNK_SIZE):
            digest.update(chunk)
    return digest.hexdigest()


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


def remove_temporary_files(folder: Path, syscall: SyscallHook = direct_call) -> None:
    """Remove the temporary files and folders (`tmp.*`), which a killed process leaves."""
    for path in sorted(folder.glob("tmp.*")):
        remove(path, syscall)
