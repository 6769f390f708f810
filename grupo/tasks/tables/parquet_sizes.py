"""Sizes of the row groups of a Parquet file, as its metadata and its pages state them."""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from grupo.core.limits import COLUMNS, ROW_GROUP_SIZE, ROW_TEXT
from grupo.tasks.tables.base import FileBytes
from grupo.tasks.tables.parquet_pages import Page, pages_of
from grupo.util.errors import ConfigError

VALUE_BYTES = 8  # of a number, or of the code of a text, in memory
TEXT_TYPES = ("STRING", "NONE", "JSON", "ENUM")  # logical types of columns of bytes
OVERHEAD = 2**16  # bytes of a column in a row group beside its values


class ColumnSizes(NamedTuple):
    """Sizes of a column in a row group.

    Args:
        name: The column.
        num_bytes: Bytes of its pages without compression.
        num_values: Its values, nulls included.
        decoded: Bytes of its values in memory, texts that rows share counted once.
    """

    name: str
    num_bytes: int
    num_values: int
    decoded: int


def check_stated_sizes(path: Path, metadata: Any) -> None:
    """Raise `ConfigError` for too many columns and too large row groups, from the metadata.

    Args:
        path: The file.
        metadata: Its metadata, of pyarrow.
    """
    if metadata.num_columns > COLUMNS.maximum:
        count = f"{metadata.num_columns:,}"
        raise ConfigError(f"{path} has {count} columns. Allowed: {COLUMNS.allowed}.")
    for group in range(metadata.num_row_groups):
        _check_row_group(path, group, _stated_sizes(metadata, group))


def check_pages(
    path: Path, metadata: Any, group: int, file: FileBytes, texts: Container[str]
) -> None:
    """Raise `ConfigError` for a row group that is too large, from the headers of its pages.

    Args:
        path: The file.
        metadata: Its metadata, of pyarrow.
        group: The index of the row group.
        file: The bytes of the file.
        texts: The columns in which a text that rows share is in memory once.
    """
    _check_row_group(path, group, _sizes_in_pages(metadata, group, file, texts))


def shared_texts(metadata: Any) -> frozenset[str]:
    """The columns of texts and bytes, also inside lists, that pyarrow reads with a dictionary.

    Args:
        metadata: The metadata of a file, of pyarrow.
    """
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    columns = (column for group in groups for _, column in _columns(group))
    delta = {c.path_in_schema for c in columns if "DELTA_BYTE_ARRAY" in c.encodings}
    fields = map(metadata.schema.column, range(metadata.num_columns))
    texts = {
        field.path
        for field in fields
        if field.physical_type == "BYTE_ARRAY" and field.logical_type.type in TEXT_TYPES
    }
    return frozenset(texts - delta)


def _stated_sizes(metadata: Any, group: int) -> Iterator[ColumnSizes]:
    """The sizes of the columns of a row group, as the metadata state them."""
    row_group = metadata.row_group(group)
    for index, column in _columns(row_group):
        count = max(column.num_values, row_group.num_rows)
        size = column.total_uncompressed_size
        decoded = count * _value_bytes(metadata, index)
        yield ColumnSizes(column.path_in_schema, size, column.num_values, decoded)


def _sizes_in_pages(
    metadata: Any, group: int, file: FileBytes, texts: Container[str]
) -> Iterator[ColumnSizes]:
    """The sizes of the columns of a row group, as its pages state them."""
    for index, column in _columns(metadata.row_group(group)):
        pages = list(pages_of(file, column))
        size, count = sum(page.num_bytes for page in pages), sum(page.num_values for page in pages)
        value = _value_bytes(metadata, index)
        if column.physical_type == "BYTE_ARRAY" and column.path_in_schema not in texts:
            # an entry of the dictionary is copied for each row
            value = max(value, *(page.num_bytes for page in pages if page.is_dictionary), 0)
        decoded = sum(page.num_values * max(value, _repeated_bytes(page)) for page in pages)
        yield ColumnSizes(column.path_in_schema, size, count, decoded)


def _repeated_bytes(page: Page) -> int:
    """Bytes of the longest value that a page may hold beside what it has of it."""
    return page.num_bytes if page.is_delta else 0


def _columns(row_group: Any) -> Iterator[tuple[int, Any]]:
    return ((index, row_group.column(index)) for index in range(row_group.num_columns))


def _value_bytes(metadata: Any, column: int) -> int:
    """Bytes of a value in memory; those of a fixed length that rows share are there for each."""
    return max(VALUE_BYTES, metadata.schema.column(column).length)


def _check_row_group(path: Path, group: int, columns: Iterable[ColumnSizes]) -> None:
    """Raise `ConfigError` for a row group that is too large, or whose values are on average."""
    place, sizes = f"{path}, row group {group + 1}", list(columns)
    for column in sizes:
        if column.num_bytes - OVERHEAD > column.num_values * ROW_TEXT.maximum:
            raise ConfigError(
                f"{place}: the column {column.name!r} has {column.num_bytes:,} bytes in"
                f" {column.num_values:,} values. Allowed: {ROW_TEXT.allowed} a value."
            )
    size = max(sum(column.num_bytes for column in sizes), sum(column.decoded for column in sizes))
    if size > ROW_GROUP_SIZE.maximum:
        raise ConfigError(f"{place} has {size:,} bytes. Allowed: {ROW_GROUP_SIZE.allowed}.")
