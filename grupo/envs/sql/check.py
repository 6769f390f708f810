"""Whether a query answers a question: it is run, and its rows are compared with the reference's."""

import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, NamedTuple

from annotated_types import Interval

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor
from grupo.core.ranges import FiniteSeconds, PositiveInt
from grupo.core.types import Task
from grupo.envs.program_reward import is_unicode
from grupo.envs.sql.answer import sql_query
from grupo.envs.sql.database import Database, altered_copy, database_at
from grupo.envs.sql.results import is_ordered, same_rows
from grupo.envs.tools.sql_query import QueryResult, UnreadableDatabaseError, run_query
from grupo.util.errors import ConfigError

DATABASE_COLUMN = "database"  # of a task: the file that its question is about
MAX_QUERY_CHARS = 10_000  # a longer one is no answer
RANDOM_FUNCTIONS = ("random", "randomblob")  # a result by chance is no answer


class Outcome(NamedTuple):
    """Result of a query, compared with that of the reference query.

    Args:
        runs: True if it returned a result, whatever it was.
        is_right: True if the result is that of the reference query.
    """

    runs: bool = False
    is_right: bool = False


@component
class QueryCheck:
    """Runs the query of an answer and compares its result with that of the reference query.

    The results are equal as multisets of rows, or as sequences if the reference has ORDER BY. Both
    queries also run on copies of the database with other rows, so that a query that states the
    result is wrong. A query that exceeds a limit is wrong.

    Args:
        extract: Finds the query in the rollout's text.
        time_limit: Seconds that each query may take.
        max_rows: Rows that a reference query may return.
        altered_copies: Number of copies with other rows, 0 to 2.
    """

    extract: Extractor = AfterThinking(sql_query)
    time_limit: FiniteSeconds = 2.0
    max_rows: PositiveInt = 10_000
    altered_copies: Annotated[int, Interval(ge=0, le=2)] = 2

    def query(self, text: str) -> str | None:
        """The query in a text; None if it has none that could be run."""
        query = self.extract(text)
        if not query or len(query) > MAX_QUERY_CHARS or "\0" in query or not is_unicode(query):
            return None
        return query

    def outcome(self, task: Task, text: str) -> Outcome:
        """Outcome of the query in a text.

        Raises:
            ConfigError: The reference query fails, or the database cannot be read.
        """
        query = self.query(text)
        if query is None:
            return Outcome()
        return _outcome(self, task_database(task), reference_query(task), query)

    def check_reference(self, task: Task) -> None:
        """Raise `ConfigError` if the task's reference query fails or returns no row."""
        reference = reference_query(task)
        database = task_database(task)
        try:
            if not _reference_result(self, database, reference).rows:
                raise ConfigError("it returns no row, as wrong queries do. Allowed: some rows.")
            for copy in self.copies(database):
                _reference_result(self, copy, reference)
        except ConfigError as error:
            raise ConfigError(f"{_place(task)}: {reference[:200]!r}: {error}") from error

    def copies(self, database: Database) -> Iterator[Database]:
        """The altered copies of a database, made when they are needed."""
        return (altered_copy(database, index) for index in range(self.altered_copies))


def reference_query(task: Task) -> str:
    """The query whose result is right.

    Raises:
        ConfigError: The task has none.
    """
    reference = task.reference_answer
    if not isinstance(reference, str) or not reference.strip():
        raise ConfigError(
            f"{_place(task)}: the reference answer is {reference!r}. Allowed: a query."
        )
    return reference


def task_database(task: Task) -> Database:
    """The database of a task.

    Raises:
        ConfigError: The task names none, or no file.
    """
    path = task.columns.get(DATABASE_COLUMN)
    if not isinstance(path, str):
        raise ConfigError(
            f"{_place(task)}: column {DATABASE_COLUMN!r} is {path!r}. Allowed: a file."
        )
    return database_at(path)


def _place(task: Task) -> str:
    return f"tasks: {task.location or task.key}"


@lru_cache(maxsize=4096)
def _outcome(check: QueryCheck, database: Database, reference: str, query: str) -> Outcome:
    outcomes = []
    for tried in _databases(check, database):
        expected = _reference_result(check, tried, reference)
        try:
            max_rows = max(1, len(expected.rows))
            found = run_query(tried.path, query, check.time_limit, max_rows, RANDOM_FUNCTIONS)
        except UnreadableDatabaseError as error:
            raise ConfigError(f"path: {database.path!r} cannot be read: {error}.") from error
        except (sqlite3.Error, TimeoutError):
            return Outcome(runs=bool(outcomes))
        if not _is_equal(found, expected, is_ordered(reference)):
            return Outcome(runs=True)
        outcomes.append(tried)
    return Outcome(runs=True, is_right=True)


def _databases(check: QueryCheck, database: Database) -> Iterator[Database]:
    yield database
    yield from check.copies(database)


def _is_equal(found: QueryResult, expected: QueryResult, in_order: bool) -> bool:
    if found.is_cut or len(found.columns) != len(expected.columns):
        return False
    return same_rows(found.rows, expected.rows, in_order)


@lru_cache(maxsize=64)
def _reference_result(check: QueryCheck, database: Database, reference: str) -> QueryResult:
    """The result of a reference query; raises `ConfigError` if it cannot be compared."""
    arguments = (reference, check.time_limit, check.max_rows, RANDOM_FUNCTIONS)
    try:
        result = run_query(database.path, *arguments)
    except (sqlite3.Error, TimeoutError) as error:
        raise ConfigError(f"the reference query fails: {error}.") from error
    if result.is_cut:
        raise ConfigError(
            f"it returns more than {check.max_rows:,} rows or a mebibyte. Allowed: less."
        )
    return result
