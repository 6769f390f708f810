"""Queries of a SQLite database that nothing can be written to."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from grupo.core.component import component
from grupo.core.errors import ConfigError

PROGRESS_INTERVAL = 1000  # of SQLite's machine between two looks at the clock
MAX_VALUE_BYTES = 1 << 20  # bytes of one value
READ_ACTIONS = (  # opening other files, settings and all that writes is denied
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)


@component
class Sql:
    """Run one SELECT on a SQLite database; the answer is its rows, one a line, values by tabs."""

    path: str
    time_limit: float = 2.0
    max_rows: int = 50

    def check(self) -> None:
        """Refuse a database that is not there."""
        if not Path(self.path).is_file():
            raise ConfigError(f"path: {self.path!r} is not a file. Allowed: a SQLite database.")
        try:
            self("SELECT name FROM sqlite_master")
        except sqlite3.Error as error:
            raise ConfigError(f"path: {self.path!r} is no SQLite database: {error}.") from error

    def __call__(self, query: str) -> str:
        uri = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        ends = time.monotonic() + self.time_limit
        with closing(sqlite3.connect(uri, uri=True)) as opened:
            opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            opened.set_authorizer(_authorize)
            opened.set_progress_handler(lambda: time.monotonic() > ends, PROGRESS_INTERVAL)
            try:
                return _format_rows(opened.execute(query), self.max_rows)
            except sqlite3.OperationalError as error:
                late = time.monotonic() > ends
                raise TimeoutError(f"no answer in {self.time_limit} s") if late else error from None


def _format_rows(cursor: sqlite3.Cursor, max_rows: int) -> str:
    head = [column[0] for column in cursor.description or ()]
    rows = cursor.fetchmany(max_rows + 1)
    more = [("...",)] * (len(rows) > max_rows)
    return "\n".join("\t".join(map(str, row)) for row in (head, *rows[:max_rows], *more))


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY
