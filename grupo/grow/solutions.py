"""Worked solutions of task families: what a small model is first taught to say."""

from collections.abc import Sequence
from re import findall

from grupo.errors import Refused, nearest
from grupo.randomness import derive
from grupo.rollout import Task

MARK = "#### "  # comes before the answer


def chain_sum(task: Task) -> Sequence[str]:
    """Two of five questions are worked out term by term, the others answered at once.

    >>> print(worked_sum("4 + 3 - 12"))
    4+3=7
    7-12=-5
    #### -5
    """
    expression = "".join(findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
    worked = derive(0, "worked", task.key) % 5 < 2
    return [worked_sum(expression) if worked else f"{MARK}{task.answer}"]


def worked_sum(expression: str) -> str:
    """The running totals of a sum, a line each, then the answer."""
    first, *rest = expression.split()
    total, lines = int(first), []
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        after = total + int(term) if sign == "+" else total - int(term)
        lines.append(f"{total}{sign}{term}={after}\n")
        total = after
    return f"{''.join(lines)}{MARK}{total}"


def of(family: str):
    """The function that solves a family's tasks."""
    known = {"chain_sum": chain_sum}
    if family not in known:
        raise Refused(f"Nobody wrote worked solutions of {family!r}. {nearest(family, known)}")
    return known[family]
