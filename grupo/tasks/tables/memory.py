"""Rows in memory: lists of mappings, data frames of pandas, and data sets of `datasets`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grupo.tasks.tables.base import LocatedRow, Table, check_row_count
from grupo.tasks.tables.datasets_table import DatasetTable
from grupo.util.errors import ConfigError


class ListTable:
    """Mappings in a sequence.

    Args:
        name: Name of the table, for locations.
        rows: The rows.
    """

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.name = name
        self.rows = rows
        check_row_count(name, len(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[LocatedRow]:
        return map(self.read, range(len(self)))

    def read(self, index: int) -> LocatedRow:
        row = self.rows[index]
        location = f"{self.name}, row {index + 1}"
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise ConfigError(f"{location} is a {kind}. Allowed: a mapping, such as a dict.")
        return location, row


def table_in_memory(name: str, rows: Any) -> Table | None:
    """The table of an object in memory; None if it is no table.

    Args:
        name: Name of the table, for locations.
        rows: A list or tuple of mappings, a `datasets.Dataset` or a `pandas.DataFrame`.
    """
    if isinstance(rows, list | tuple):
        return ListTable(name, rows)
    kind = library_type(rows)
    if kind == "pandas.DataFrame":
        return ListTable(name, _records(name, rows))
    if kind == "datasets.Dataset":
        return DatasetTable(name, rows)
    return None


def _records(name: str, frame: Any) -> list[Mapping[str, Any]]:
    """The rows of a data frame as dicts; a missing value is None, as in a file."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ConfigError(f"{name}: two columns are named {twice!r}. Allowed: different names.")
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def library_type(value: object) -> str:
    """Package and name of the first class of a library among the classes of an object.

    Neither library is imported: an object of one exists only if it was imported before.

    >>> from datasets import Dataset
    >>> library_type(Dataset.from_dict({"prompt": ["a"]})), library_type(3)
    ('datasets.Dataset', '')
    """
    for cls in type(value).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in ("pandas", "datasets"):
            return f"{package}.{cls.__name__}"
    return ""
