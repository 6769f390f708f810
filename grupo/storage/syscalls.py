"""The narrow place through which all changes of files go, one call of the system at a time."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class SyscallHook(Protocol):
    """How a call that changes files is made: `disk(os.fsync, file)`; tests fail or record some."""

    def __call__(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


def direct_call(call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The call itself."""
    return call(*args, **kwargs)


@contextmanager
def open_descriptor(path: Path, flags: int, syscall: SyscallHook) -> Iterator[int]:
    """A file's descriptor; errors of what is done with it name the file."""
    try:
        file = syscall(os.open, path, flags | os.O_CLOEXEC, 0o666)
        try:
            yield file
        finally:
            syscall(os.close, file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_all(file: int, content: bytes | memoryview, syscall: SyscallHook) -> None:
    """Write until all is written: the system may take only a part at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[syscall(os.write, file, rest) :]
