"""The interface of tables, whose rows are read when they are needed."""

import os
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from grupo.util.errors import ConfigError
from grupo.util.limits import TASK_ROWS
from grupo.util.regular_files import open_regular_file

# the location of a row, such as "rows.jsonl, line 3", and the row
LocatedRow = tuple[str, Mapping[str, Any]]


class Table(Protocol):
    """Rows of a file or a data set; memory holds an index of them, and few rows at a time."""

    def __len__(self) -> int: ...

    def read(self, index: int) -> LocatedRow:
        """The row of an index; raises `ConfigError` if it cannot be read."""
        ...

    def __iter__(self) -> Iterator[LocatedRow]:
        """All rows in order."""
        ...


class FileBytes:
    """Random access to the bytes of a file, which stays open: a file moved over it is not read.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        descriptor = open_regular_file(path)
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`."""
        return os.pread(self.descriptor, end - start, start)


def check_row_count(path: Path | str, count: int) -> None:
    """Raise `ConfigError` if a table has too many rows."""
    if count > TASK_ROWS.maximum:
        raise ConfigError(f"{path} has {count:,} rows. Allowed: {TASK_ROWS.allowed}.")
