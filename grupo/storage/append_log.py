"""Bytes that only grow: the newest in memory, older ones in a file without a name."""

import os
import tempfile
from functools import cached_property
from mmap import ACCESS_COPY, mmap
from weakref import finalize

from grupo.storage.syscalls import direct_call, write_all

MAX_MEMORY_BYTES = 1 << 24  # bytes in memory


class AppendLog:
    """Records one behind the other, read again by where they begin.

    Whoever reads may do so while another thread appends. The file lies where `tempfile` has its own
    and is gone with the process.
    """

    def __init__(
        self, content: bytes | memoryview = b"", max_memory_bytes: int = MAX_MEMORY_BYTES
    ) -> None:
        self.max_memory_bytes = max_memory_bytes
        self.tail = 0, bytearray()  # where it begins, and what is in memory
        self.append(content)

    def __len__(self) -> int:
        begin, newest = self.tail
        return begin + len(newest)

    def append(self, record: bytes | memoryview) -> int:
        """Add it; say where it begins."""
        place, (_, newest) = len(self), self.tail
        newest += record
        if len(newest) > self.max_memory_bytes:
            self._flush()
        return place

    def read(self, offset: int, size: int) -> bytes:
        """So many bytes of one record."""
        begin, newest = self.tail
        if offset >= begin:
            return bytes(newest[offset - begin : offset - begin + size])
        return os.pread(self._file, size, offset)

    def contents(self) -> memoryview:
        """All of it as it is now, from the disk where that is too much."""
        begin, newest = self.tail
        if not begin:
            return memoryview(newest[:])
        self._flush()
        return memoryview(mmap(self._file, len(self), access=ACCESS_COPY))

    def _flush(self) -> None:
        begin, newest = self.tail
        try:
            write_all(self._file, memoryview(newest), direct_call)
        except OSError as error:
            raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
        self.tail = begin + len(newest), bytearray()  # at once: somebody may be reading

    @cached_property
    def _file(self) -> int:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, open as long as the log is
        finalize(self, file.close)
        return file.fileno()
