"""When two results of queries are equal."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

SIGNIFICANT_DIGITS = 12  # of a fraction: sums in another order differ beyond them
EXACT_FLOAT = 1 << 53  # whole numbers below it are exact as floats
# comments and quoted texts, in which words and brackets mean nothing
OPAQUE = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]""",
    re.DOTALL,
)
BRACKET_OR_ORDER = re.compile(r"[()]|\border\s+by\b", re.IGNORECASE)

Row = tuple[Any, ...]


def same_rows(rows: Sequence[Row], reference: Sequence[Row], in_order: bool) -> bool:
    """True if the rows are equal, as sequences or as multisets.

    Values are compared by type: None equals None, whole numbers are exact, fractions count to 12
    significant digits, 1 equals 1.0, and a text never equals a number. The order of columns counts,
    their names do not.

    >>> same_rows([(2, "b"), (1.0, None)], [(1, None), (2, "b")], in_order=False)
    True
    >>> same_rows([("1",)], [(1,)], in_order=False)
    False
    """
    found = [tuple(map(_comparable, row)) for row in rows]
    expected = [tuple(map(_comparable, row)) for row in reference]
    return found == expected if in_order else Counter(found) == Counter(expected)


def is_ordered(query: str) -> bool:
    """True if the query itself has ORDER BY: that of a subquery or a window orders no result.

    >>> is_ordered("SELECT a FROM t WHERE b = 'order by' ORDER BY a")
    True
    >>> is_ordered("SELECT rank() OVER (ORDER BY a) FROM (SELECT a FROM t ORDER BY a)")
    False
    """
    depth = 0
    for match in BRACKET_OR_ORDER.finditer(OPAQUE.sub(" ", query)):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0 and match[0] not in "()":
            return True
    return False


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and not (value.is_integer() and abs(value) < EXACT_FLOAT):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return value
