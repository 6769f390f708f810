"""A lock that a process holds while it lives: dying, however it dies, gives it back."""

import fcntl
import os
from pathlib import Path
from typing import Self
from weakref import WeakSet, finalize

from grupo.core.errors import ConfigError


class Lock:
    """The right to write in a folder, which one holder has at a time; refused while it is held.

    The system keeps it, not the file: a file that a killed process left behind locks nothing.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self.close = finalize(self, os.close, self.file)
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(self._in_use(path.parent)) from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be locked: {error.strerror}.") from error
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, str(os.getpid()).encode(), 0)
        _open_locks.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.close.alive:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            self.close()

    def _in_use(self, folder: Path) -> str:
        holder = os.pread(self.file, 20, 0).decode("ascii", "replace")
        self.close()
        return (
            f"{str(folder)!r} is in use: process {holder} trains there. Wait until it ends, or"
            " stop it: what it did is kept."
        )


_open_locks: WeakSet[Lock] = WeakSet()


def _close_inherited_locks() -> None:
    """A forked child, a worker of a reward say, must not hold on to what its parent locked."""
    for lock in list(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_inherited_locks)
