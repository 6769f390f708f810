"""SQLite databases that questions are about: their schema, and copies with other rows."""

import os
import sqlite3
import tempfile
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from grupo.envs.sql.copy_worker import quoted
from grupo.envs.tools.sql_query import UnreadableDatabaseError, run_query
from grupo.util.errors import ConfigError
from grupo.util.parent_death import name_prefix, run_after_end
from grupo.util.program_pool import ProgramError, ProgramPool
from grupo.util.terminal_text import shorten

TIME_LIMIT = 5.0  # seconds in which the schema is read
MAX_TABLES = 1000
MAX_SCHEMA_CHARS = 1 << 16
MAX_COPIED_BYTES = 64 << 20
COPY_PROGRAM = Path(__file__).with_name("copy_worker.py")
COPY_TIME_LIMIT = 60.0  # seconds; a database of 64 MiB with 6 million rows takes 23 s on one core
MAX_COPY_PROCESSES = 4
SCHEMA_QUERY = """\
SELECT sql FROM sqlite_schema
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid"""


class Database(NamedTuple):
    """A state of a database file: another time or size of the file is another state.

    Args:
        path: The file.
        modified_ns: Time of its last change, in nanoseconds.
        size: Its size in bytes.
    """

    path: str
    modified_ns: int
    size: int


def database_at(path: str) -> Database:
    """The present state of a database file.

    Raises:
        ConfigError: There is no such file.
    """
    if not os.path.isfile(path):  # False also for a name that no file can have
        raise ConfigError(
            f"path: {shorten(path, 200)!r} is not a file. Allowed: a SQLite database."
        )
    stat = Path(path).stat()
    return Database(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def schema_of(database: Database) -> str:
    """The statements that create the tables and views, as the database has them.

    Raises:
        ConfigError: The file is no database, it is locked or damaged, or it has no table or too
            many.
    """
    path = database.path
    try:
        result = run_query(path, SCHEMA_QUERY, TIME_LIMIT, MAX_TABLES)
    except (sqlite3.Error, TimeoutError) as error:
        raise ConfigError(f"path: {path!r} cannot be read: {error}.") from error
    schema = "".join(f"{row[0]};\n" for row in result.rows)
    if not schema:
        raise ConfigError(f"path: {path!r} has no table. Allowed: a database with tables.")
    if result.is_cut or len(schema) > MAX_SCHEMA_CHARS:
        raise ConfigError(
            f"path: {path!r} has {len(result.rows)} tables or more, whose schema has"
            f" {len(schema):,} characters. Allowed: at most {MAX_TABLES:,} tables and"
            f" {MAX_SCHEMA_CHARS:,} characters, which the prompt holds."
        )
    return schema


def schema_digest(database: Database) -> str:
    """The first 16 hexadecimal digits of the schema's SHA-256."""
    return sha256(schema_of(database).encode()).hexdigest()[:16]


@lru_cache(maxsize=64)
def columns_of(database: Database) -> Mapping[str, tuple[str, ...]]:
    """The names of the columns by the name of the table or view, in lower case.

    A view that no query can read, and a table of a module that none may use, has no columns.

    Raises:
        ConfigError: The database cannot be read.
    """
    tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
    try:
        names = run_query(database.path, tables, TIME_LIMIT, MAX_TABLES).rows
        return {name.lower(): _columns(database.path, name) for (name,) in names}
    except (sqlite3.Error, TimeoutError) as error:
        raise ConfigError(f"path: {database.path!r} cannot be read: {error}.") from error


def _columns(path: str, table: str) -> tuple[str, ...]:
    query = f"SELECT * FROM {quoted(table)} LIMIT 0"
    try:
        columns = run_query(path, query, TIME_LIMIT, 1).columns
    except UnreadableDatabaseError:
        raise
    except sqlite3.Error:  # a view of a table that is gone, or a module that no query may use
        return ()
    return tuple(column.lower() for column in columns)


@lru_cache(maxsize=64)
def altered_copy(database: Database, index: int) -> Database:
    """A copy of the database in which half of the rows are missing and values have moved.

    Every row is missing in one of the copies 0 and 1. In every column but those of the primary key,
    the values of the rows that stay are shuffled, so that a query that states a result is wrong.
    The copy depends on the database and the index alone. It is removed when the process ends.

    Args:
        database: The database.
        index: 0 or 1.

    Raises:
        ConfigError: The database is too large, it cannot be read, or its copy takes too long or too
            much memory, as that of a check or a view may that is made to.
    """
    if database.size > MAX_COPIED_BYTES:
        raise ConfigError(
            f"path: {database.path!r} has {database.size >> 20:,} MiB, and altered copies are made"
            f" of at most {MAX_COPIED_BYTES >> 20} MiB. Allowed: a smaller database, or"
            " altered_copies=0, with which a query that states its result counts as right."
        )
    copy = Path(tempfile.mkdtemp(dir=_folder())) / "altered.sqlite"
    request = {
        "uri": f"{Path(database.path).absolute().as_uri()}?mode=ro",
        "copy": str(copy),
        "index": index,
        "time_limit": COPY_TIME_LIMIT,
    }
    try:
        reason = _copy_programs().call(request, COPY_TIME_LIMIT)["error"]
    except (TimeoutError, ProgramError) as error:
        reason = f"the process that copies it {error}"
    if reason:
        raise ConfigError(
            f"path: {database.path!r} cannot be copied: {reason}. Allowed: a database of which a"
            f" copy takes at most {COPY_TIME_LIMIT:g} s, or altered_copies=0."
        )
    return database_at(str(copy))


@cache
def _folder() -> str:
    """The folder of the copies, which is removed when this process ends, also if it is killed."""
    folder = tempfile.mkdtemp(prefix=name_prefix())
    run_after_end("rm", "-rf", folder)
    return folder


@cache
def _copy_programs() -> ProgramPool:
    return ProgramPool(COPY_PROGRAM, MAX_COPY_PROCESSES)
