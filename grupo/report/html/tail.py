"""A journal read as it grows."""

import os
from collections.abc import Iterator
from pathlib import Path


class Tail:
    """The whole lines of a journal, each once, with where it begins; a torn last one waits."""

    def __init__(self, path: Path) -> None:
        self.path, self.end, self.last = path, 0, b""

    def __call__(self) -> Iterator[tuple[int, bytes]]:
        """The lines since the last call; none where there is no file."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.end)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                begin, self.end, self.last = self.end, self.end + len(line), line
                yield begin, line

    @property
    def torn(self) -> int:
        """How many bytes lie behind the last whole line."""
        return self.path.stat().st_size - self.end if self.path.exists() else 0

    @property
    def cut(self) -> bool:
        """Is what was read no longer there? A run that is resumed cuts its journals back."""
        if not self.end:
            return False
        if not self.path.exists():
            return True
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), len(self.last), self.end - len(self.last)) != self.last
