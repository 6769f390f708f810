"""Queries of a SQLite database that nothing can be written to."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from grupo.core.component import piece
from grupo.core.errors import Refused

STEPS = 1000  # of SQLite's machine between two looks at the clock
LARGEST = 1 << 20  # bytes of one value
READING = (  # opening other files, settings and all that writes is denied
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)


@piece
class Sql:
    """Run one SELECT on a SQLite database; the answer is its rows, one a line, values by tabs."""

    path: str
    seconds: float = 2.0
    rows: int = 50

    def check(self) -> None:
        """Refuse a database that is not there."""
        if not Path(self.path).is_file():
            raise Refused(f"path: {self.path!r} is not a file. Allowed: a SQLite database.")
        try:
            self("SELECT name FROM sqlite_master")
        except sqlite3.Error as error:
            raise Refused(f"path: {self.path!r} is no SQLite database: {error}.") from error

    def __call__(self, query: str) -> str:
        uri = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        ends = time.monotonic() + self.seconds
        with closing(sqlite3.connect(uri, uri=True)) as opened:
            opened.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
            opened.set_authorizer(_allowed)
            opened.set_progress_handler(lambda: time.monotonic() > ends, STEPS)
            try:
                return _table(opened.execute(query), self.rows)
            except sqlite3.OperationalError as error:
                late = time.monotonic() > ends
                raise TimeoutError(f"no answer in {self.seconds} s") if late else error from None


def _table(found: sqlite3.Cursor, most: int) -> str:
    head = [column[0] for column in found.description or ()]
    rows = found.fetchmany(most + 1)
    more = [("...",)] * (len(rows) > most)
    return "\n".join("\t".join(map(str, row)) for row in (head, *rows[:most], *more))


def _allowed(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY
