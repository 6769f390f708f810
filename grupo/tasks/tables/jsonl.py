"""JSONL files: one JSON object per line."""

import re
from array import array
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from grupo.tasks.tables.base import FileBytes, LocatedRow, check_row_count
from grupo.util.errors import ConfigError
from grupo.util.json_text import check_unicode, parse_json
from grupo.util.limits import TASK_LINE_SIZE
from grupo.util.regular_files import count_lines

ONE_OBJECT_PER_LINE = "Write one object on each line, as pandas' to_json(lines=True) does."
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonlTable:
    """The lines of a file, without empty ones; the index takes 24 bytes per row.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        check_row_count(path, count_lines(path))
        self.path = path
        self.bytes = FileBytes(path)
        self.starts = array("q")
        self.ends = array("q")
        self.lines = array("q")  # their numbers, from 1
        self._index_lines()

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[LocatedRow]:
        return map(self.read, range(len(self)))

    def read(self, index: int) -> LocatedRow:
        location = f"{self.path}, line {self.lines[index]}"
        line = self.bytes.read(self.starts[index], self.ends[index])
        return location, _parse_object(line, location)

    def _index_lines(self) -> None:
        """Find the lines; of one that is too long, only the first part."""
        end = 0
        with self.path.open("rb") as file:
            read_line = partial(file.readline, TASK_LINE_SIZE.maximum)
            for number, line in enumerate(iter(read_line, b""), 1):
                start, end = end, end + len(line)
                if line.strip():
                    self.starts.append(start)
                    self.ends.append(end)
                    self.lines.append(number)


def _parse_object(line: bytes, location: str) -> Mapping[str, Any]:
    if len(line) >= TASK_LINE_SIZE.maximum:
        raise ConfigError(f"{location} is too long. Allowed: {TASK_LINE_SIZE.allowed}.")
    try:
        text = line.decode("utf-8-sig")
        row = parse_json(text)
        if _SURROGATE_ESCAPE.search(text):
            check_unicode(row)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{location} is not UTF-8: {error}. The line is {line[:80]!r}. Save the file as UTF-8."
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"{location} is not JSON: {error}. The line is {line[:80]!r}. {ONE_OBJECT_PER_LINE}"
        ) from error
    if not isinstance(row, Mapping):
        kind = type(row).__name__
        raise ConfigError(f"{location} is a JSON {kind}. Allowed: an object. {ONE_OBJECT_PER_LINE}")
    return row
