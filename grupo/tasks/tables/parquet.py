"""Parquet files: the rows of a few row groups are in memory."""

from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from threading import Lock
from typing import Any

from grupo.core.limits import ROW_VALUES
from grupo.tasks.row_sizes import (
    check_num_values,
    check_text_size,
    longest_text,
    num_nested_values,
)
from grupo.tasks.tables.base import FileBytes, LocatedRow, check_row_count
from grupo.tasks.tables.parquet_sizes import check_pages, check_stated_sizes, shared_texts
from grupo.util.errors import ConfigError

ROW_GROUPS_IN_MEMORY = 2
BATCH_ROWS = 256  # rows that are converted at once when all are read
BATCH_BYTES = 2**26  # of one of their columns
# a text that is no UTF-8, a date that Python does not have, an unknown time zone
READ_ERRORS = (OSError, ValueError, OverflowError, KeyError)


class ParquetTable:
    """The rows of a file.

    A row is read with its whole row group. Files with row groups of a few thousand rows are read
    at random fastest.

    Args:
        path: The file.

    Raises:
        ConfigError: The file cannot be read, or it has larger row groups or texts than
            `grupo.core.limits` allows. Where its metadata show that, no row is read; a row group
            whose pages are larger than the metadata state is refused before it is read.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow.parquet import ParquetFile, read_metadata

        self.path = path
        self.lock = Lock()
        with self._reading():
            metadata = read_metadata(path)
            sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            check_row_count(path, sum(sizes))
            check_stated_sizes(path, metadata)
            # a text that many rows share is in memory once, as it is in the file
            self.texts = shared_texts(metadata)
            self.file = ParquetFile(path, metadata=metadata, read_dictionary=[*self.texts])
            self.bytes = FileBytes(path)
        self.starts = [0, *accumulate(sizes)]  # of the row groups, and the number of rows
        self.row_group = lru_cache(maxsize=ROW_GROUPS_IN_MEMORY)(self.checked_row_group)

    def __len__(self) -> int:
        return self.starts[-1]

    def __iter__(self) -> Iterator[LocatedRow]:
        with self._reading():
            # a batch of several row groups could be larger than one may be
            rows = chain.from_iterable(map(self._rows_of, range(len(self.starts) - 1)))
            for index, row in enumerate(rows):
                yield self._location(index), row

    def read(self, index: int) -> LocatedRow:
        group = bisect_right(self.starts, index) - 1
        with self._reading():
            with self.lock:
                rows: Any = self.row_group(group).slice(index - self.starts[group], 1)
            (row,) = self._in_python(rows)
        return self._location(index), row

    def checked_row_group(self, group: int) -> Any:
        """A row group, as a table of Arrow; raises `ConfigError` if it is beyond a limit."""
        with self._reading():
            check_pages(self.path, self.file.metadata, group, self.bytes, self.texts)
            rows = self.file.read_row_group(group)
            self._check_num_rows(group, rows.num_rows)
            self._check_texts(rows)
            return rows

    def _rows_of(self, group: int) -> Iterator[Any]:
        """The rows of a row group in Python."""
        check_pages(self.path, self.file.metadata, group, self.bytes, self.texts)
        num_rows = 0
        for batch in self.file.iter_batches(BATCH_ROWS, row_groups=[group]):
            num_rows += batch.num_rows
            yield from self._rows(batch)
        self._check_num_rows(group, num_rows)

    def _check_num_rows(self, group: int, num_rows: int) -> None:
        stated = self.starts[group + 1] - self.starts[group]
        if num_rows != stated:
            raise ValueError(
                f"row group {group + 1} has {num_rows:,} rows, and the metadata state {stated:,}."
            )

    def _rows(self, batch: Any) -> Iterator[Any]:
        """The rows of a batch of Arrow in Python; few of them at once if they are large."""
        longest = max(1, self._check_texts(batch))
        is_large = _num_values(batch) > ROW_VALUES.maximum
        count = 1 if is_large else max(1, min(BATCH_ROWS, BATCH_BYTES // longest))
        for start in range(0, batch.num_rows, count):
            yield from self._in_python(batch.slice(start, count))

    def _in_python(self, rows: Any) -> list[Any]:
        check_num_values(_num_values(rows), f"{self.path}: a row")
        return rows.to_pylist()

    def _check_texts(self, rows: Any) -> int:
        """The bytes of the longest text in rows; raises `ConfigError` if it is too long."""
        longest = 0
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            longest = max(longest, longest_text(column))
            check_text_size(longest, f"{self.path}: a value of the column {name!r}")
        return longest

    def _location(self, index: int) -> str:
        return f"{self.path}, row {index + 1}"

    @contextmanager
    def _reading(self) -> Generator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except ConfigError:
            raise
        except (ArrowException, *READ_ERRORS) as error:
            raise ConfigError(
                f"{self.path} is not readable as Parquet: {error} Write it again."
            ) from error


def _num_values(rows: Any) -> int:
    """The values in the lists and structs of a table or a batch of rows."""
    arrays = (chunk for column in rows.columns for chunk in getattr(column, "chunks", [column]))
    return sum(map(num_nested_values, arrays))
