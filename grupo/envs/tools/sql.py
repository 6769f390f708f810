"""A tool that runs queries on a read-only SQLite database."""

import sqlite3
from pathlib import Path

from grupo.core.component import component
from grupo.core.ranges import FiniteSeconds
from grupo.envs.tools.sql_query import run_query
from grupo.util.errors import ConfigError

MAX_OUTPUT_CHARS = 1 << 20


@component
class Sql:
    """Run one SELECT on a SQLite database; the answer is its rows, one a line, values by tabs."""

    # The docstring is the tool's description in the policy's prompt. `path` is the database file,
    # `time_limit` the seconds that a query may take, `max_rows` the rows that are returned.
    path: str
    time_limit: FiniteSeconds = 2.0
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
        result = run_query(self.path, query, self.time_limit, self.max_rows)
        lines = [result.columns, *result.rows, *[("...",)] * result.is_cut]
        text = "\n".join("\t".join(map(str, line)) for line in lines)
        return text[:MAX_OUTPUT_CHARS]
