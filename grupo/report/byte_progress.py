"""A progress bar of the bytes of a folder that have been read."""

from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn

from grupo.report.transient_bar import TransientBar

UPDATE_SIZE = 1 << 22  # bytes between two updates of the bar, because an update takes time


class ByteProgress(TransientBar):
    """Shows how many bytes of a folder were read; nothing is shown for a small folder.

    Args:
        folder: The folder; its size is the total.
        console: A terminal; elsewhere nothing is shown.
    """

    def __init__(self, folder: Path, console: Console) -> None:
        total = sum(map(_size, folder.rglob("*")))
        self.pending = 0  # bytes since the last update
        columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
        super().__init__(console, *columns, total=total, disable=total < UPDATE_SIZE)

    def __call__(self, count: int) -> None:
        """Count bytes that were read."""
        self.pending += count
        if self.pending >= UPDATE_SIZE:
            self.progress.advance(self.task, self.pending)
            self.pending = 0


def _size(path: Path) -> int:
    """Size of a file in bytes; 0 for a file that a run in progress has removed."""
    with suppress(OSError):
        return path.stat().st_size
    return 0
