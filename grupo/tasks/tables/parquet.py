"""Parquet files: the rows of a few row groups are in memory."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

from grupo.tasks.tables.base import LocatedRow, check_row_count
from grupo.util.errors import ConfigError

ROW_GROUPS_IN_MEMORY = 2
BATCH_ROWS = 256  # rows that are converted at once when all are read


class ParquetTable:
    """The rows of a file.

    A row is read with its whole row group. Files with row groups of a few thousand rows are read
    at random fastest.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow.parquet import ParquetFile

        self.path = path
        self.lock = Lock()
        with self._reading():
            self.file = ParquetFile(path)
        metadata = self.file.metadata
        check_row_count(path, metadata.num_rows)
        sizes = (metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
        self.starts = [0, *accumulate(sizes)]  # of the row groups, and the number of rows
        self.row_group = lru_cache(maxsize=ROW_GROUPS_IN_MEMORY)(self.file.read_row_group)

    def __len__(self) -> int:
        return self.starts[-1]

    def __iter__(self) -> Iterator[LocatedRow]:
        with self._reading():
            batches = self.file.iter_batches(batch_size=BATCH_ROWS)
            rows = (row for batch in batches for row in batch.to_pylist())
            for index, row in enumerate(rows):
                yield self._location(index), row

    def read(self, index: int) -> LocatedRow:
        group = bisect_right(self.starts, index) - 1
        with self._reading(), self.lock:
            rows: Any = self.row_group(group).slice(index - self.starts[group], 1)
        (row,) = rows.to_pylist()
        return self._location(index), row

    def _location(self, index: int) -> str:
        return f"{self.path}, row {index + 1}"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except (ArrowException, OSError) as error:
            raise ConfigError(
                f"{self.path} is not readable as Parquet: {error} Write it again."
            ) from error
