"""System calls of this process that change files in a folder, made through a hook."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grupo.storage.syscalls import SyscallHook

CALLS = ("open", "close", "write", "fsync", "ftruncate", "mkdir", "rmdir", "unlink")
CALLS_OF_TWO_PATHS = ("rename", "replace")


class FolderCalls:
    """Forwards the calls on paths and open files of a folder to a hook; makes the others."""

    def __init__(self, root: Path, hook: SyscallHook) -> None:
        self.root, self.hook = root, hook
        self.files: set[int] = set()

    def __call__(self, call, /, *args: Any, **kwargs: Any) -> Any:
        if not self.is_inside(args[0]) or _only_reads(call, *args):
            return call(*args, **kwargs)
        if call.__name__ == "close":
            self.files.discard(args[0])
        result = self.hook(call, *args, **kwargs)
        if call.__name__ == "open":
            self.files.add(result)
        return result

    def is_inside(self, target: int | str | Path) -> bool:
        if isinstance(target, int):
            return target in self.files
        return Path(target).is_relative_to(self.root)


def _only_reads(call, /, path: Any, flags: int = os.O_CREAT, *_: Any) -> bool:
    """Whether a call opens a file to read it; a folder is opened for its fsync."""
    changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    return call.__name__ == "open" and not flags & changes and not Path(path).is_dir()


@contextmanager
def system_calls_through(hook: SyscallHook, root: Path) -> Generator[None]:
    """Make the calls of this process inside `root` through the hook."""
    calls = FolderCalls(root, hook)
    with pytest.MonkeyPatch.context() as patch:
        for name in (*CALLS, *CALLS_OF_TWO_PATHS):
            patch.setattr(os, name, partial(calls, getattr(os, name)))
        yield
