"""A tool that runs queries on a read-only SQLite database."""

import sqlite3
from functools import cache
from pathlib import Path

from grupo.core.component import component
from grupo.core.ranges import FiniteSeconds
from grupo.util.errors import ConfigError
from grupo.util.program_pool import ProgramError, ProgramPool

PROGRAM = Path(__file__).with_name("sql_worker.py")
MAX_PROCESSES = 16  # with fewer, slow queries of some rollouts would delay those of others


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
        request = {
            "uri": f"{Path(self.path).absolute().as_uri()}?mode=ro",
            "query": query,
            "max_rows": self.max_rows,
            "time_limit": self.time_limit,
        }
        try:
            reply = _programs().call(request, self.time_limit)
        except TimeoutError:
            raise TimeoutError(f"no answer in {self.time_limit} s") from None
        except ProgramError as error:
            raise sqlite3.OperationalError(f"the query {error}") from None
        if "error" in reply:
            raise sqlite3.OperationalError(reply["error"])
        return reply["rows"]


@cache
def _programs() -> ProgramPool:
    return ProgramPool(PROGRAM, MAX_PROCESSES)
