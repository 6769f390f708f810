"""Incremental reads of a journal that grows."""

import os
from collections.abc import Iterator
from pathlib import Path

from grupo.util.limits import JOURNAL_LINE
from grupo.util.regular_files import read_lines


class JournalTail:
    """Yields each complete line of a journal once, with its offset; a torn last line waits.

    Args:
        path: the journal; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.last_line = b""

    def __call__(self) -> Iterator[tuple[int, bytes]]:
        """The lines since the last call, each with its byte offset."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for line in read_lines(file, JOURNAL_LINE):
                if not line.endswith(b"\n"):
                    return
                begin = self.offset
                self.offset = self.offset + len(line)
                self.last_line = line
                yield begin, line

    @property
    def torn_bytes(self) -> int:
        """The number of bytes after the last complete line."""
        return self.path.stat().st_size - self.offset if self.path.exists() else 0

    @property
    def was_cut_back(self) -> bool:
        """True if the last line read is gone: a resumed run truncates its journals."""
        if not self.offset:
            return False
        if not self.path.exists():
            return True
        size = len(self.last_line)
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), size, self.offset - size) != self.last_line
