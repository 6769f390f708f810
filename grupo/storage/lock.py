"""A lock that a process holds while it lives; the system releases it when the process ends."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self
from weakref import WeakSet, finalize

from grupo.util.errors import ConfigError


class Lock:
    """Exclusive right to write in a folder.

    The lock belongs to the system, not to the file: the file of a killed process locks nothing.

    Args:
        path: The lock file; created if missing.

    Raises:
        ConfigError: Another process holds the lock.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self.close = finalize(self, os.close, self.file)
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self.file, 0)
            os.pwrite(self.file, str(os.getpid()).encode(), 0)
        except BlockingIOError:
            raise ConfigError(self._in_use(path.parent)) from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be locked: {error.strerror}.") from error
        _open_locks.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.close.alive:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            with suppress(OSError):  # an error that ends the run is the one to report
                self.close()

    def _in_use(self, folder: Path) -> str:
        holder = os.pread(self.file, 20, 0).decode("ascii", "replace")
        self.close()
        return (
            f"{str(folder)!r} is in use: process {holder} trains there. Wait until it ends, or"
            " stop it: its checkpoints are kept."
        )


_open_locks: WeakSet[Lock] = WeakSet()


def _close_inherited_locks() -> None:
    """Close the locks in a forked child, such as a reward worker; the parent keeps them."""
    for lock in list(_open_locks):
        lock.close()


os.register_at_fork(after_in_child=_close_inherited_locks)
