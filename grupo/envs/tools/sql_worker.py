"""The program of the SQL tool: it reads queries as lines of JSON and writes lines of JSON.

It runs as a script and imports nothing of grupo. Only a process can be stopped at any moment: one
call of an SQL function may take hours, and SQLite itself stops between calls only.
"""

import json
import resource
import signal
import sqlite3
import sys
from contextlib import closing
from functools import partial
from typing import Any

MAX_VALUE_BYTES = 1 << 20
MAX_OUTPUT_CHARS = 1 << 20
MEMORY_BYTES = 512 << 20  # of address space, Python's own included
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


def main() -> None:
    """Reply to each query with its columns and first rows, or with SQLite's error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends this process
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # should the parent, which kills this process at the time limit, be gone by then
        signal.setitimer(signal.ITIMER_REAL, 2 * request["time_limit"] + 1)
        print(json.dumps(_reply(request)), flush=True)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return _run(request)
    except MemoryError:
        return {"error": f"the query needs more than {MEMORY_BYTES >> 20} MiB of memory"}
    except sqlite3.Error as error:
        return {"error": str(error), "code": getattr(error, "sqlite_errorname", "")}
    except Exception as error:
        return {"error": str(error)}


def _run(request: dict[str, Any]) -> dict[str, Any]:
    # another process may lock the database for a moment; the rest of the time is the query's
    lock_time_limit = request["time_limit"] / 2
    with closing(sqlite3.connect(request["uri"], uri=True, timeout=lock_time_limit)) as connection:
        connection.execute("PRAGMA temp_store = MEMORY")  # sorting writes no file
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_authorizer(partial(_authorize, FUNCTIONS - set(request["denied"])))
        return _first_rows(connection.execute(request["query"]), request["max_rows"])


def _first_rows(cursor: sqlite3.Cursor, max_rows: int) -> dict[str, Any]:
    """The first rows of a result, and whether it has more than `max_rows` or a mebibyte of them."""
    columns = [column[0] for column in cursor.description or ()]
    rows, size = list[list[Any]](), 0
    for row in cursor:
        size += sum(map(_size, row))
        if len(rows) == max_rows or size > MAX_OUTPUT_CHARS:
            return {"columns": columns, "rows": rows, "is_cut": True}
        rows.append([_json_value(value) for value in row])
    return {"columns": columns, "rows": rows, "is_cut": False}


def _size(value: Any) -> int:
    """Characters of a value, about."""
    return 2 * len(value) if isinstance(value, bytes) else len(str(value)) + 1


def _json_value(value: Any) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _authorize(
    functions: frozenset[str], action: int, _: object, name: str | None, *_others: object
) -> int:
    if action == sqlite3.SQLITE_FUNCTION and str(name).lower() not in functions:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in READ_ACTIONS else sqlite3.SQLITE_DENY


if __name__ == "__main__":
    main()
