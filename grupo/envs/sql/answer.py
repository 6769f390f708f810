"""The query in an answer."""

import re

from grupo.util.fenced_blocks import fenced_blocks

# the English word "with" begins no query
QUERY_START = re.compile(
    r"\bselect\b|\bwith\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\s*\(", re.IGNORECASE
)
QUERY_END = re.compile(r";|\n\s*\n|```|</")


def sql_query(text: str) -> str | None:
    r"""The last block of SQL, or the text from the first SELECT or WITH to a semicolon or gap.

    >>> sql_query("So:\n```sql\nSELECT a FROM t;\n```\nDone.")
    'SELECT a FROM t;'
    >>> sql_query("Query: SELECT a FROM t; SELECT b FROM t"), sql_query("None.")
    ('SELECT a FROM t', None)
    >>> sql_query("A query with a sum:\nWITH x AS (SELECT 1) SELECT * FROM x")
    'WITH x AS (SELECT 1) SELECT * FROM x'
    """
    if blocks := fenced_blocks(text, ("sql", "sqlite", "SQL")):
        return blocks[-1].strip()
    start = QUERY_START.search(text)
    if start is None:
        return None
    rest = text[start.start() :]
    end = QUERY_END.search(rest)
    return (rest[: end.start()] if end else rest).strip()
