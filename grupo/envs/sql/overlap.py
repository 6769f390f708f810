"""How much of the reference query a query has: tables and columns, and sequences of tokens."""

import logging
from collections.abc import Mapping, Set
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout, Task
from grupo.envs.sql.answer import QUERY_START, sql_query
from grupo.envs.sql.check import MAX_QUERY_CHARS, reference_query, task_database
from grupo.envs.sql.database import columns_of
from grupo.rewards import PerRolloutReward
from grupo.util.optional_deps import optional_dependency

EXTRA = "sql"  # of grupo, with the parser
Columns = Mapping[str, tuple[str, ...]]


def _is_relevant(record: logging.LogRecord) -> bool:
    """False for a warning of an answer that is no query, of which a run has thousands."""
    return "unsupported syntax" not in str(record.msg) and "traverse scope" not in str(record.msg)


logging.getLogger("sqlglot").addFilter(_is_relevant)


@component
class SchemaOverlap(PerRolloutReward):
    """The Jaccard similarity of the tables and columns that the query and the reference use.

    A query that cannot be parsed has 0. Reasoning-SQL, Pourreza et al. (arXiv:2503.23157).

    Args:
        extract: Finds the query in the rollout's text.
    """

    extract: Extractor = AfterThinking(sql_query)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def check(self) -> None:
        """Raises `ConfigError` if the parser is not installed."""
        import_sqlglot()

    def score(self, task: Task, rollout: Rollout) -> float:
        query = self.extract(rollout.text)
        columns = columns_of(task_database(task))
        reference = schema_items(reference_query(task), columns)
        return jaccard(schema_items(query or "", columns), reference)


@component
class NgramOverlap(PerRolloutReward):
    """The Jaccard similarity of the token n-grams of the query and the reference.

    Reasoning-SQL, Pourreza et al. (arXiv:2503.23157), with bigrams.

    Args:
        size: Tokens of an n-gram.
        extract: Finds the query in the rollout's text.
    """

    size: PositiveInt = 2
    extract: Extractor = AfterThinking(sql_query)

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def check(self) -> None:
        """Raises `ConfigError` if the parser is not installed."""
        import_sqlglot()

    def score(self, task: Task, rollout: Rollout) -> float:
        query = self.extract(rollout.text)
        reference = token_ngrams(reference_query(task), self.size)
        return jaccard(token_ngrams(query or "", self.size), reference)


def jaccard(found: Set[Any], reference: Set[Any]) -> float:
    """Size of the intersection divided by that of the union; 0 if both are empty.

    >>> jaccard({"t", "t.a", "t.b"}, {"t", "t.a", "t.c"})
    0.5
    """
    union = found | reference
    return len(found & reference) / len(union) if union else 0.0


def token_ngrams(query: str, size: int) -> frozenset[tuple[str, ...]]:
    """The token n-grams of a query; none of a text that is no SQL. Only texts keep their case."""
    sqlglot = import_sqlglot()
    if len(query) > MAX_QUERY_CHARS:
        return frozenset()
    try:
        tokens = sqlglot.tokenize(query.rstrip("; \n\t"), read="sqlite")
    except sqlglot.errors.SqlglotError:
        return frozenset()
    texts = [_token_text(token) for token in tokens]
    return frozenset(tuple(texts[i : i + size]) for i in range(len(texts) - size + 1))


def _token_text(token: Any) -> str:
    return f"'{token.text}'" if token.token_type.name == "STRING" else token.text.lower()


def schema_items(query: str, columns: Columns) -> frozenset[str]:
    """The tables of a query, and its columns as `table.column`, in lower case.

    An alias counts as its table, and `*` as all columns of the tables beside it. A column that no
    table has counts by its name alone. A text that is no query has no items.

    Args:
        query: The query.
        columns: The columns of each table of the database, in lower case.
    """
    sqlglot = import_sqlglot()
    if len(query) > MAX_QUERY_CHARS or not QUERY_START.match(query):
        return frozenset()
    try:
        scopes = sqlglot.optimizer.scope.traverse_scope(sqlglot.parse_one(query, read="sqlite"))
        return frozenset(item for scope in scopes for item in _scope_items(scope, columns))
    except Exception:  # sqlglot fails in many ways on a text that is no query
        return frozenset()


def _scope_items(scope: Any, columns: Columns) -> set[str]:
    """The items of one SELECT; those of its subqueries have scopes of their own."""
    sqlglot = import_sqlglot()
    is_table = {name: isinstance(x, sqlglot.exp.Table) for name, x in scope.sources.items()}
    tables = {name: scope.sources[name].name.lower() for name, is_one in is_table.items() if is_one}
    items = set(tables.values())
    stars = scope.find_all(sqlglot.exp.Star)
    if any(isinstance(star.parent, sqlglot.exp.Select | sqlglot.exp.Column) for star in stars):
        items |= {f"{table}.{name}" for table in tables.values() for name in columns.get(table, ())}
    for column in scope.columns:
        items |= _column_items(column, tables, is_table, columns)
    return items


def _column_items(
    column: Any, tables: Mapping[str, str], is_table: Mapping[str, bool], columns: Columns
) -> set[str]:
    """The item of a column; none for a column of another SELECT, which counts there."""
    name, alias = column.name.lower(), column.table
    if alias in tables:
        return {f"{tables[alias]}.{name}"}
    if alias:  # a subquery, or a table of the query around this one
        return set()
    owners = [table for table in tables.values() if name in columns.get(table, ())]
    if owners:
        return {f"{owners[0]}.{name}"}
    return {name} if all(is_table.values()) else set()


def import_sqlglot() -> Any:
    """The parser of SQL; raises `ConfigError` if it is not installed."""
    with optional_dependency("sqlglot", EXTRA):
        import sqlglot.optimizer.scope
    return sqlglot
