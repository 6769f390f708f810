"""A tool that runs queries on a read-only SQLite database."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from grupo.core.component import component
from grupo.core.ranges import Seconds
from grupo.util.errors import ConfigError

PROGRESS_INTERVAL = 1000  # instructions of SQLite's virtual machine between two checks of the time
MAX_VALUE_BYTES = 1 << 20
# the authorizer denies all other actions: opening files, settings, and everything that writes
READ_ACTIONS = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)


@component
class Sql:
    """Run one SELECT on a SQLite database; the answer is its rows, one a line, values by tabs."""

    # The docstring is the tool's description in the policy's prompt. `path` is the database file,
    # `time_limit` the seconds that a query may take, `max_rows` the rows that are returned.
    path: str
    time_limit: Seconds = 2.0
    max_rows: int = 50

    def check(self) -> None:
        """Raises `ConfigError` if `path` is not a SQLite database."""
        if not Path(self.path).is_file():
            raise ConfigError(f"path: {self.path!r} is not a file. Allowed: a SQLite database.")
        try:
            self("SELECT name FROM sqlite_master")
        except sqlite3.Error as error:
            raise ConfigError(f"path: {self.path!r} is no SQLite database: {error}.") from error

    def __call__(self, query: str) -> str:
        uri = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        deadline = time.monotonic() + self.time_limit
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            connection.set_authorizer(_authorize)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_INTERVAL)
            try:
                return _format_rows(connection.execute(query), self.max_rows)
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no answer in {self.time_limit} s") from None
                raise


def _format_rows(cursor: sqlite3.Cursor, max_rows: int) -> str:
    header = [column[0] for column in cursor.description or ()]
    rows = cursor.fetchmany(max_rows + 1)
    ellipsis_row = [("...",)] * (len(rows) > max_rows)
    lines = (header, *rows[:max_rows], *ellipsis_row)
    return "\n".join("\t".join(map(str, line)) for line in lines)


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY
