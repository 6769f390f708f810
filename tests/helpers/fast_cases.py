"""Parameters of a test of which only some are run by `make test`."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def fast_cases(fast: int | Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters; those that are not fast run in `make test-slow` only.

    Args:
        fast: The number of first cases that are fast, or the fast cases.
        cases: Values, or tuples of values of several arguments.

    >>> [list(case.marks) == [] for case in fast_cases(1, "abc")]
    [True, False, False]
    >>> [list(case.marks) == [] for case in fast_cases([("b", 2)], [("a", 1), ("b", 2)])]
    [False, True]
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if (i < fast if isinstance(fast, int) else case in fast) else pytest.mark.slow,
        )
        for i, case in enumerate(cases)
    ]
