"""Queries on a SQLite database, run in processes that can read it and do nothing else."""

import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from grupo.util.program_pool import ProgramError, ProgramPool

PROGRAM = Path(__file__).with_name("sql_worker.py")
MAX_PROCESSES = 16  # with fewer, slow queries of some rollouts would delay those of others
# SQLite's codes of a database that cannot be read, whatever the query is
UNREADABLE_CODES = ("BUSY", "LOCKED", "IOERR", "CORRUPT", "NOTADB", "CANTOPEN", "PROTOCOL")


class UnreadableDatabaseError(sqlite3.OperationalError):
    """The database, and not the query, is the cause of the failure: it is locked, or damaged."""


class QueryResult(NamedTuple):
    """The result of a query.

    Args:
        columns: Names of the columns.
        rows: The first rows, of None, int, float, str and bytes.
        is_cut: True if there are more rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool


def run_query(
    path: str, query: str, time_limit: float, max_rows: int, denied: Sequence[str] = ()
) -> QueryResult:
    """The result of one query; the process that runs it can neither write nor open other files.

    Args:
        path: File of the database.
        query: The query.
        time_limit: Seconds that the query may take; for half of them it waits for a lock.
        max_rows: Rows that are returned; less if they have more than a mebibyte of text.
        denied: Functions that the query may not call, beyond those that no query may.

    Raises:
        TimeoutError: The query took longer.
        UnreadableDatabaseError: The database is locked, damaged or no database.
        sqlite3.OperationalError: SQLite refused the query.
    """
    request = {
        "uri": f"{Path(path).absolute().as_uri()}?mode=ro",
        "query": query,
        "max_rows": max_rows,
        "time_limit": time_limit,
        "denied": list(denied),
    }
    try:
        reply = _programs().call(request, time_limit)
    except TimeoutError:
        raise TimeoutError(f"no answer in {time_limit} s") from None
    except ProgramError as error:
        raise sqlite3.OperationalError(f"the query {error}") from None
    if "error" in reply:
        code = reply.get("code", "").removeprefix("SQLITE_").partition("_")[0]
        is_unreadable = code in UNREADABLE_CODES
        raise (UnreadableDatabaseError if is_unreadable else sqlite3.OperationalError)(
            reply["error"]
        )
    rows = tuple(tuple(map(_value, row)) for row in reply["rows"])
    return QueryResult(tuple(reply["columns"]), rows, reply["is_cut"])


def _value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


@cache
def _programs() -> ProgramPool:
    return ProgramPool(PROGRAM, MAX_PROCESSES)
