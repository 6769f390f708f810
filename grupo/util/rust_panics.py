"""Errors of libraries in Rust as errors of ours, without backtraces of panics on the terminal."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from grupo.util.errors import ConfigError

PANIC = "PanicException"  # of pyo3; derived from BaseException, and in no module to import
STANDARD_ERROR = 2
_lock = Lock()


@contextmanager
def rust_errors(subject: str) -> Generator[None]:
    """Raise a `ConfigError` in place of a panic, or of an error without a type of its own.

    Args:
        subject: Begins the message: the field and the value that the library was given.
    """
    try:
        yield
    except BaseException as error:
        if not is_panic(error) and type(error) is not Exception:
            raise
        raise ConfigError(f"{subject}: {' '.join(str(error).split())}.") from None


@contextmanager
def without_backtraces() -> Generator[None]:
    """Drop what is written to standard error during a panic; anything else is written afterwards.

    The output of other threads is held back meanwhile. For loading, not for training.
    """
    with _lock:
        sys.stderr.flush()
        original = os.dup(STANDARD_ERROR)
        held = os.memfd_create("stderr") if hasattr(os, "memfd_create") else original
        os.dup2(held, STANDARD_ERROR)
        is_dropped = False
        try:
            yield
        except BaseException as error:
            is_dropped = is_panic(error)
            raise
        finally:
            sys.stderr.flush()
            os.dup2(original, STANDARD_ERROR)
            if held != original:
                _copy(held, original, is_dropped)
            os.close(original)


def is_panic(error: BaseException) -> bool:
    """Whether an error is a panic of a library in Rust."""
    return type(error).__name__ == PANIC


def _copy(held: int, original: int, is_dropped: bool) -> None:
    """Write the held output, unless it is dropped, and close it."""
    os.lseek(held, 0, os.SEEK_SET)
    while not is_dropped and (block := os.read(held, 1 << 16)):
        os.write(original, block)
    os.close(held)
