"""Worked solutions, on which toy models are fine-tuned."""

import re
from collections.abc import Sequence

from grupo.core.types import Task
from grupo.util.rng import derive_key

ANSWER_PREFIX = "#### "  # precedes the answer


def chain_sum_solutions(task: Task) -> Sequence[str]:
    """The solution of a sum: worked out for up to four terms, and for 2 of 5 longer sums.

    The solution of the others is only the answer. The model thus learns both behaviours.
    """
    expression = "".join(re.findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
    short = len(expression.split()) < 2 * 5 - 1
    worked = short or derive_key(0, "worked", task.key) % 5 < 2
    return [
        running_total_solution(expression) if worked else f"{ANSWER_PREFIX}{task.reference_answer}"
    ]


def running_total_solution(expression: str) -> str:
    """The running total after every term, and the answer.

    >>> print(running_total_solution("4 + 3 - 9"))
    4 +3=7 -9=-2
    #### -2
    """
    first, *rest = expression.split()
    total = int(first)
    text = first
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        total += int(term) if sign == "+" else -int(term)
        text += f" {sign}{term}={total}"
    return f"{text}\n{ANSWER_PREFIX}{total}"
