"""CSV and TSV files: the first row names the columns, and all values are text."""

import csv
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from io import StringIO
from pathlib import Path

from grupo.tasks.tables.base import FileBytes, LocatedRow, check_row_count
from grupo.util.errors import ConfigError
from grupo.util.limits import TASK_LINE_SIZE
from grupo.util.regular_files import count_lines


class CsvTable:
    """The records of a file in UTF-8; the index takes 24 bytes per row.

    Quoted values may contain line ends. Numbers stay text, as a policy's answer is.

    Args:
        path: The file.
        delimiter: The character between two values.
    """

    def __init__(self, path: Path, delimiter: str) -> None:
        check_row_count(path, count_lines(path))
        self.path = path
        self.delimiter = delimiter
        self.bytes = FileBytes(path)
        self.starts = array("q")
        self.ends = array("q")
        self.lines = array("q")  # numbers of their first lines, from 1
        self.header = self._index_records()

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[LocatedRow]:
        return map(self.read, range(len(self)))

    def read(self, index: int) -> LocatedRow:
        location = self._location(self.lines[index])
        text = self.bytes.read(self.starts[index], self.ends[index]).decode()
        (values,) = self._records(StringIO(text, newline="\n"))
        return location, dict(zip(self.header, values, strict=True))

    def _index_records(self) -> Sequence[str]:
        """Find the records behind the header; raises `ConfigError` for one that is malformed."""
        header: Sequence[str] = ()
        with self.path.open("rb") as file:
            read_line = partial(file.readline, TASK_LINE_SIZE.maximum)
            lines = _DecodedLines(self.path, iter(read_line, b""))
            records = self._records(lines)
            while True:
                start, number = lines.end, lines.number + 1
                try:
                    record = next(records, None)
                except csv.Error as error:
                    problem = f"{self._location(number)} is not a row of CSV: {error}."
                    raise ConfigError(f"{problem} Allowed: quotes in pairs.") from error
                if record is None:
                    return header
                if not header:
                    header = self._checked_header(record, number)
                elif record:
                    self._check_record(record, header, number)
                    self.starts.append(start)
                    self.ends.append(lines.end)
                    self.lines.append(number)

    def _records(self, lines: Iterable[str]) -> Iterator[list[str]]:
        csv.field_size_limit(TASK_LINE_SIZE.maximum)
        return csv.reader(lines, delimiter=self.delimiter, strict=True)

    def _location(self, line: int) -> str:
        return f"{self.path}, line {line}"

    def _checked_header(self, header: Sequence[str], line: int) -> Sequence[str]:
        twice = [name for name, count in Counter(header).items() if count > 1 or not name.strip()]
        if twice:
            raise ConfigError(
                f"{self._location(line)} names a column {twice[0]!r}"
                f"{' twice' * bool(twice[0].strip())}. Allowed: a name for each column, none twice."
            )
        return header

    def _check_record(self, record: Sequence[str], header: Sequence[str], line: int) -> None:
        if len(record) != len(header):
            raise ConfigError(
                f"{self._location(line)} has {len(record)} values. Allowed: {len(header)}, one for"
                f" each column: {', '.join(header)[:200]}."
            )


class _DecodedLines(Iterator[str]):
    """Lines as text, with the offset of the end and the number of the last one."""

    def __init__(self, path: Path, lines: Iterator[bytes]) -> None:
        self.path = path
        self.lines = lines
        self.end = 0
        self.number = 0

    def __next__(self) -> str:
        line = next(self.lines)
        self.number += 1
        self.end += len(line)
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self.path}, line {self.number} is not UTF-8: {error}.") from error
