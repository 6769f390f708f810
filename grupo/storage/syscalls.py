"""System calls that change files, made through one hook so that tests can fail or record them."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class SyscallHook(Protocol):
    """Makes a system call that changes files: `syscall(os.fsync, file)`."""

    def __call__(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


def direct_call(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Make the call; the hook outside of tests."""
    return call(*args, **kwargs)


@contextmanager
def open_descriptor(path: Path, flags: int, syscall: SyscallHook) -> Generator[int]:
    """Open a file; errors of calls on its descriptor name the file."""
    try:
        file = syscall(os.open, path, flags | os.O_CLOEXEC, 0o666)
        try:
            yield file
        finally:
            syscall(os.close, file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_all(file: int, content: bytes | memoryview, syscall: SyscallHook) -> None:
    """Write all bytes; the system may accept only some of them per call."""
    rest = memoryview(content)
    while rest:
        rest = rest[syscall(os.write, file, rest) :]
