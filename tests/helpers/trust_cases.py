"""The number of cases of the long tests: all of them, or a share.

`TRUST_SHARE=0.05` in the environment runs a twentieth of the cases of each part, and `TRUST_SEED`
chooses other random cases (see docs/testing.md).
"""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

SHARE = float(os.environ.get("TRUST_SHARE", "1"))
SEED = int(os.environ.get("TRUST_SEED", "0"))


def scaled(count: int) -> int:
    """The share of a number of cases, at least 1."""
    return max(1, round(count * SHARE))


def share_of(cases: Sequence[T]) -> list[T]:
    """The share of the cases, evenly spaced."""
    count = scaled(len(cases))
    return [cases[i * len(cases) // count] for i in range(count)]
