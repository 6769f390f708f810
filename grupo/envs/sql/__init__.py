"""Text-to-SQL on a SQLite database: the environment, its rewards, and those of two papers."""

from grupo.envs.sql.check import Outcome, QueryCheck
from grupo.envs.sql.cognisql_r1_zero import cognisql_rewards, tagged_query
from grupo.envs.sql.database import Database, database_at, schema_digest, schema_of
from grupo.envs.sql.overlap import NgramOverlap, SchemaOverlap
from grupo.envs.sql.questions import SqlQuestions
from grupo.envs.sql.reasoning_sql import partial_credit, reasoning_sql_rewards
from grupo.envs.sql.results import is_ordered, same_rows
from grupo.envs.sql.rewards import SqlExecution, SqlRuns, UnlessRight

__all__ = [
    "Database",
    "NgramOverlap",
    "Outcome",
    "QueryCheck",
    "SchemaOverlap",
    "SqlExecution",
    "SqlQuestions",
    "SqlRuns",
    "UnlessRight",
    "cognisql_rewards",
    "database_at",
    "is_ordered",
    "partial_credit",
    "reasoning_sql_rewards",
    "same_rows",
    "schema_digest",
    "schema_of",
    "tagged_query",
]
