"""Worked solutions of task families: what a small model is first taught to say."""

from collections.abc import Sequence
from re import findall

from grupo.core.rng import derive_key
from grupo.core.types import Task

ANSWER_PREFIX = "#### "  # comes before the answer


def chain_sum_solutions(task: Task) -> Sequence[str]:
    """Sums of up to four terms are worked out; of longer ones two in five, the rest just answered.

    So a model learns both to work a sum out and to blurt, as people write both.
    """
    expression = "".join(findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
    short = len(expression.split()) < 2 * 5 - 1
    worked = short or derive_key(0, "worked", task.key) % 5 < 2
    return [
        running_total_solution(expression) if worked else f"{ANSWER_PREFIX}{task.reference_answer}"
    ]


def running_total_solution(expression: str) -> str:
    """The running total after every term, then the answer.

    >>> print(running_total_solution("4 + 3 - 9"))
    4 +3=7 -9=-2
    #### -2
    """
    first, *rest = expression.split()
    total, said = int(first), first
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        total += int(term) if sign == "+" else -int(term)
        said += f" {sign}{term}={total}"
    return f"{said}\n{ANSWER_PREFIX}{total}"
