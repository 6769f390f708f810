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
# scalar, aggregate, window, date, mathematical, JSON and full-text functions that read values alone
FUNCTION_NAMES = """
-> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling char coalesce concat
concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime
degrees dense_rank exp first_value floor format glob group_concat hex highlight if ifnull iif
instr json json_array json_array_length json_error_position json_extract json_group_array
json_group_object json_insert json_object json_patch json_pretty json_quote json_remove
json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood
likely ln log log10 log2 lower ltrim match max min mod nth_value ntile nullif octet_length
percent_rank pi pow power printf quote radians random randomblob rank replace round row_number
rtrim sign sin sinh snippet sqrt strftime string_agg substr substring sum tan tanh time timediff
total trim trunc typeof unhex unicode unixepoch unlikely upper zeroblob
"""
FUNCTIONS = frozenset(FUNCTION_NAMES.split())


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


def _authorize(action: int, _: object, name: str | None, *_others: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION and str(name).lower() not in FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY
