"""An append-only log of bytes: the newest in memory, older ones in an unnamed temporary file."""

import os
import tempfile
from functools import cached_property
from mmap import ACCESS_COPY, mmap
from weakref import finalize

from grupo.storage.syscalls import direct_call, write_all

MAX_MEMORY_BYTES = 1 << 24


class AppendLog:
    """Records one after another, read by their offset.

    One thread may read while another appends. The file lies in the folder of `tempfile` and
    vanishes with the process.

    Args:
        content: The first bytes.
        max_memory_bytes: Bytes held in memory before they are moved to the file.
    """

    def __init__(
        self, content: bytes | memoryview = b"", max_memory_bytes: int = MAX_MEMORY_BYTES
    ) -> None:
        self.max_memory_bytes = max_memory_bytes
        self.tail = 0, bytearray()  # offset and content of the bytes in memory
        self.append(content)

    def __len__(self) -> int:
        offset, newest = self.tail
        return offset + len(newest)

    def append(self, record: bytes | memoryview) -> int:
        """Append a record and return its offset."""
        offset = len(self)
        _, newest = self.tail
        newest += record
        if len(newest) > self.max_memory_bytes:
            self._flush()
        return offset

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes of one record from `offset` on."""
        tail_offset, newest = self.tail
        if offset >= tail_offset:
            start = offset - tail_offset
            return bytes(newest[start : start + size])
        return os.pread(self._file, size, offset)

    def contents(self) -> memoryview:
        """All bytes up to now; mapped from the file if they do not fit in memory."""
        tail_offset, newest = self.tail
        if not tail_offset:
            return memoryview(newest[:])
        self._flush()
        return memoryview(mmap(self._file, len(self), access=ACCESS_COPY))

    def _flush(self) -> None:
        offset, newest = self.tail
        try:
            write_all(self._file, memoryview(newest), direct_call)
        except OSError as error:
            raise OSError(error.errno, error.strerror, tempfile.gettempdir()) from error
        self.tail = offset + len(newest), bytearray()  # one assignment: a thread may be reading

    @cached_property
    def _file(self) -> int:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, open while the log is in use
        finalize(self, file.close)
        return file.fileno()
