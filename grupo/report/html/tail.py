"""A journal read as it grows."""

import os
from collections.abc import Iterator
from pathlib import Path


class JournalTail:
    """The whole lines of a journal, each once, with where it begins; a torn last one waits."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.last_line = path, 0, b""

    def __call__(self) -> Iterator[tuple[int, bytes]]:
        """The lines since the last call; none where there is no file."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                begin, self.offset, self.last_line = self.offset, self.offset + len(line), line
                yield begin, line

    @property
    def torn_bytes(self) -> int:
        """How many bytes lie behind the last whole line."""
        return self.path.stat().st_size - self.offset if self.path.exists() else 0

    @property
    def was_cut_back(self) -> bool:
        """Is what was read no longer there? A run that is resumed cuts its journals back."""
        if not self.offset:
            return False
        if not self.path.exists():
            return True
        with self.path.open("rb") as file:
            return (
                os.pread(file.fileno(), len(self.last_line), self.offset - len(self.last_line))
                != self.last_line
            )
