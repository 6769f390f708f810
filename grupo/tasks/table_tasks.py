"""The rows of a table as a sequence of tasks, of which memory holds the keys only."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grupo.core.types import Task
from grupo.tasks.base import KEY_BYTES, TaskSequence
from grupo.tasks.columns import Columns, task_from_row
from grupo.tasks.tables import Table
from grupo.util.errors import ConfigError


class TableTasks(TaskSequence):
    """Tasks that are read from a table when they are indexed.

    All rows are read once at the start, so that a malformed one is found before a run; 16 bytes of
    each stay in memory, its key.

    Args:
        table: The rows.
        name: The table's name, for messages.
        columns: The columns of prompt, answer and source.
        source: The source of tasks whose row has none.
        folder: Paths of images, videos and audio begin here, if they are relative.
    """

    def __init__(
        self, table: Table, name: str, columns: Columns, source: str, folder: Path = Path()
    ) -> None:
        self.table = table
        self.name = name
        self.columns = columns
        self.source = source
        self.folder = folder
        self.digests = bytearray()
        for location, row in table:
            task = self._task(row, location)
            self.digests += bytes.fromhex(task.key)
        if not len(self):
            raise ConfigError(
                f"{name} has no rows. Allowed: 1 or more. Name a file with a row for each task."
            )

    def __len__(self) -> int:
        return len(self.table)

    def task_at(self, index: int) -> Task:
        location, row = self.table.read(index)
        task = self._task(row, location)
        if task.key != self._key(index):
            raise ConfigError(f"{location}: the prompt has changed since the tasks were loaded.")
        return task

    def __iter__(self) -> Iterator[Task]:
        for location, row in self.table:
            yield self._task(row, location)

    def keys(self) -> Iterator[str]:
        """The keys of all tasks, without reading a row."""
        return map(self._key, range(len(self)))

    def _task(self, row: Mapping[str, Any], location: str) -> Task:
        return task_from_row(row, self.columns, location, self.source, self.folder)

    def _key(self, index: int) -> str:
        return self.digests[index * KEY_BYTES : (index + 1) * KEY_BYTES].hex()


def task_keys(tasks: Sequence[Task]) -> Iterator[str]:
    """The keys of all tasks; makes those that are neither in memory nor in a table."""
    return tasks.keys() if isinstance(tasks, TableTasks) else (task.key for task in tasks)
