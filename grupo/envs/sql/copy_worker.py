"""The program that makes altered copies: it reads requests and writes errors as lines of JSON.

It runs as a script and imports nothing of grupo. Checks, views, generated columns and indices of a
database are expressions of its author: only a process can be stopped at any moment, whatever they
compute.
"""

import json
import resource
import signal
import sqlite3
import sys
from contextlib import closing
from random import Random
from typing import Any
from zlib import crc32

MAX_VALUE_BYTES = 64 << 20  # the size of the largest database that is copied
MEMORY_BYTES = 2 << 30  # of address space, Python's own included
# of tables with a rowid; those of full-text search and other modules keep their rows
TABLES_QUERY = """\
SELECT name FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"""


def main() -> None:
    """Reply to each request with the error of its copy, "" for none."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends this process
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # should the parent, which kills this process at the time limit, be gone by then
        signal.setitimer(signal.ITIMER_REAL, 2 * request["time_limit"] + 1)
        print(json.dumps({"error": _error(request)}), flush=True)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _error(request: dict[str, Any]) -> str:
    try:
        with (
            closing(sqlite3.connect(request["uri"], uri=True)) as source,
            closing(sqlite3.connect(request["copy"])) as target,
        ):
            source.backup(target)
            target.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            _alter(target, request["index"])
    except MemoryError:
        return f"it needs more than {MEMORY_BYTES >> 20} MiB of memory"
    except Exception as error:  # also that of a name that is no Unicode text
        return str(error)
    return ""


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


if __name__ == "__main__":
    main()
