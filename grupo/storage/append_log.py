"""Bytes that only grow: the newest in memory, older ones in a file without a name."""

import os
import tempfile
from functools import cached_property
from mmap import ACCESS_COPY, mmap
from weakref import finalize

from grupo.storage.syscalls import direct, write_all

ROOM = 1 << 24  # bytes in memory


class Log:
    """Records one behind the other, read again by where they begin.

    Whoever reads may do so while another thread appends. The file lies where `tempfile` has its own
    and is gone with the process.
    """

    def __init__(self, content: bytes | memoryview = b"", room: int = ROOM) -> None:
        self.room = room
        self.newest = 0, bytearray()  # where it begins, and what is in memory
        self.append(content)

    def __len__(self) -> int:
        begin, newest = self.newest
        return begin + len(newest)

    def append(self, record: bytes | memoryview) -> int:
        """Add it; say where it begins."""
        place, (_, newest) = len(self), self.newest
        newest += record
        if len(newest) > self.room:
            self._store()
        return place

    def read(self, place: int, size: int) -> bytes:
        """So many bytes of one record."""
        begin, newest = self.newest
        if place >= begin:
            return bytes(newest[place - begin : place - begin + size])
        return os.pread(self._file, size, place)

    def whole(self) -> memoryview:
        """All of it as it is now, from the disk where that is too much."""
        begin, newest = self.newest
        if not begin:
            return memoryview(newest[:])
        self._store()
        return memoryview(mmap(self._file, len(self), access=ACCESS_COPY))

    def _store(self) -> None:
        begin, newest = self.newest
        try:
            write_all(self._file, memoryview(newest), direct)
        except OSError as error:
            raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
        self.newest = begin + len(newest), bytearray()  # at once: somebody may be reading

    @cached_property
    def _file(self) -> int:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, open as long as the log is
        finalize(self, file.close)
        return file.fileno()
