"""SQLite databases that questions are about: their schema, and copies with other rows."""

import atexit
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

from grupo.envs.tools.sql_query import run_query
from grupo.util.errors import ConfigError

TIME_LIMIT = 5.0  # seconds in which the schema is read
MAX_TABLES = 1000
MAX_SCHEMA_CHARS = 1 << 16
MAX_COPIED_BYTES = 64 << 20
SCHEMA_QUERY = """\
SELECT sql FROM sqlite_schema
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid"""
# of tables with a rowid; those of full-text search and other modules keep their rows
TABLES_QUERY = """\
SELECT name FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"""


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
    if not Path(path).is_file():
        raise ConfigError(f"path: {path!r} is not a file. Allowed: a SQLite database.")
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
    """The names of the columns by the name of the table or view, in lower case."""
    tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
    names = run_query(database.path, tables, TIME_LIMIT, MAX_TABLES).rows
    columns = {}
    for (name,) in names:
        query = f"SELECT * FROM {quoted(name)} LIMIT 0"
        found = run_query(database.path, query, TIME_LIMIT, 1).columns
        columns[name.lower()] = tuple(column.lower() for column in found)
    return columns


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
        ConfigError: The database is too large, or it cannot be read.
    """
    if database.size > MAX_COPIED_BYTES:
        raise ConfigError(
            f"path: {database.path!r} has {database.size >> 20:,} MiB, and altered copies are made"
            f" of at most {MAX_COPIED_BYTES >> 20} MiB. Allowed: a smaller database, or"
            " altered_copies=0, with which a query that states its result counts as right."
        )
    copy = Path(tempfile.mkdtemp(dir=_folder())) / "altered.sqlite"
    uri = f"{Path(database.path).absolute().as_uri()}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(uri, uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            _alter(target, index)
    except sqlite3.Error as error:
        raise ConfigError(f"path: {database.path!r} cannot be copied: {error}.") from error
    return database_at(str(copy))


def _alter(connection: sqlite3.Connection, index: int) -> None:
    """Remove half of the rows of each table and shuffle the values of its other columns."""
    with connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {quoted(name)}")
        for (table,) in connection.execute(TABLES_QUERY).fetchall():
            _alter_table(connection, table, index)


def _alter_table(connection: sqlite3.Connection, table: str, index: int) -> None:
    # column: place, name, type, not null, default, place in the primary key, hidden
    described = connection.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
    columns = [column for column in described if not column[6]]  # generated ones are computed
    names = ", ".join(quoted(column[1]) for column in columns)
    rows = connection.execute(f"SELECT {names} FROM {quoted(table)}").fetchall()
    kept = [row for place, row in enumerate(rows) if _half_of(table, place) == index]
    values = [list(column) for column in zip(*kept, strict=True)]
    for column, column_values in zip(columns, values, strict=bool(kept)):
        if not column[5]:
            Random(f"{index}/{table}/{column[1]}").shuffle(column_values)
    connection.execute(f"DELETE FROM {quoted(table)}")
    slots = ", ".join("?" * len(columns))
    # a shuffled row may violate a constraint of several columns: it is left out
    statement = f"INSERT OR IGNORE INTO {quoted(table)} ({names}) VALUES ({slots})"
    connection.executemany(statement, zip(*values, strict=True))


def _half_of(table: str, place: int) -> int:
    """The copy, 0 or 1, that keeps the row at a place of a table."""
    return crc32(f"{table}/{place}".encode()) & 1


def quoted(name: str) -> str:
    """An identifier in quotes.

    >>> quoted("order")
    '"order"'
    """
    return '"' + name.replace('"', '""') + '"'


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp()
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    """Remove the folder of copies, unless this process is a fork of its owner."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
