"""A small language of linear programs for production plans, and answers in it with two flaws.

The prompt `earn 7 4 . hours 3 2 of 40 . boards 5 6 of 60 . litres 1 2 of 90 . whole : ` has the
profit of two products, their use of three resources with the stock of each, and whether products
are whole. The program `max 7 4 ; hours 3 2 <= 40 ; boards … ; whole ` states it, and HiGHS finds
the optimum. Words, numbers and hints are one token each.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout, Task
from grupo.envs.printed_number import reference_number
from grupo.rewards import PerRolloutReward
from grupo.tasks import ProductionPlans
from grupo.tasks.base import task_key
from grupo.tasks.production_plans import largest_profit
from grupo.util.rng import make_rng

START = "so "  # of an answer
BY_HAND = "by hand "
RESOURCES = ("hours", "boards", "litres")
KINDS = {True: "whole ", False: "parts "}
PROGRAM_HINT = "# a program finds it exactly . "
LIMIT_HINT = "# a stock is an upper limit . "
TOKENS = (
    *("earn ", "of ", "max ", "<= ", ">= ", "; ", ". ", ": ", START, BY_HAND, *KINDS.values()),
    *(PROGRAM_HINT, LIMIT_HINT, *(f"{name} " for name in RESOURCES)),
    *(f"{number} " for number in range(1, 121)),
)
HINT = re.compile(r"# [a-z ]+\. ")
ROW = rf"(?:{'|'.join(RESOURCES)}) ((?:\d{{1,4}} )+)(<=|>=) (\d{{1,4}}) ; "
PROGRAM = re.compile(
    rf"max (?P<profit>(?:\d{{1,4}} )+); (?P<rows>(?:{ROW})+)(?P<kind>whole|parts) "
)
BY_HAND_SHARE, WRONG_SHARE, HINTED_SHARE = 0.8, 0.85, 0.05  # of a beginner's answers and rows


@component
class ShortPlans:
    """`ProductionPlans` of two products with short prompts; `solution` is a right program.

    Args:
        size: Number of tasks.
        seed: Seed of the tasks.
    """

    size: PositiveInt
    seed: int

    def load(self) -> Sequence[Task]:
        return short_plans(self.size, self.seed)


@cache
def short_plans(size: int, seed: int) -> Sequence[Task]:
    """Plans with short prompts; all stages of a process share them, since HiGHS takes its time.

    Args:
        size: Number of plans.
        seed: Their seed.
    """
    return tuple(map(short_plan, ProductionPlans(size, seed, num_products=2).load()))


def short_plan(task: Task) -> Task:
    """A production plan with a short prompt, and its program."""
    profit, kind = _numbers(task.columns["profit"]), KINDS[task.columns["whole"]]
    rows = [
        (f"{name} {_numbers(use)}", f"{stock} ")
        for name, use, stock in zip(
            RESOURCES, task.columns["use"], task.columns["stock"], strict=True
        )
    ]
    stated = "".join(f"{row}of {stock}. " for row, stock in rows)
    prompt = f"earn {profit}. {stated}{kind}: "
    program = "".join(f"{row}<= {stock}; " for row, stock in rows)
    columns = {**task.columns, "solution": f"{START}max {profit}; {program}{kind}"}
    return Task(task_key(prompt), prompt, task.reference_answer, "short_plans", columns)


def _numbers(values: Sequence[int]) -> str:
    return "".join(f"{value} " for value in values)


def answer_value(text: str) -> float:
    """The number that an answer states, or the optimum of its program; NaN for neither.

    A hint is a comment.

    >>> answer_value("so by hand 84 "), answer_value("so max 7 4 ; hours 3 2 <= 42 ; parts ")
    (84.0, 98.0)
    >>> answer_value("so max 7 4 ; hours 3 2 >= 40 ; parts "), answer_value("so max 7 4 ; parts ")
    (nan, nan)
    """
    text = HINT.sub("", text).removeprefix(START)
    number = text.removeprefix(BY_HAND).strip()
    if text.startswith(BY_HAND):
        return float(number) if number.isdecimal() else math.nan
    return optimum(text)


def optimum(program: str) -> float:
    """The optimum of a program by HiGHS; NaN if it has none, or is no program."""
    match = PROGRAM.fullmatch(program)
    if match is None:
        return math.nan
    profit, rows = _integers(match["profit"]), re.findall(ROW, match["rows"])
    signs = [1 if relation == "<=" else -1 for _, relation, _ in rows]  # a >= b is -a <= -b
    use = [[sign * x for x in _integers(row[0])] for sign, row in zip(signs, rows, strict=True)]
    stock = [sign * int(row[2]) for sign, row in zip(signs, rows, strict=True)]
    if any(len(row) != len(profit) for row in use):
        return math.nan
    return largest_profit(profit, use, stock, whole=match["kind"] == "whole")


def _integers(text: str) -> list[int]:
    return [int(number) for number in text.split()]


@component
class OptimumReward(PerRolloutReward):
    """1 if the number of an answer is the largest profit, within a relative difference of 1e-6.

    Further numbers: `by_hand`, 1 for an answer without a program; `wrong`, its rows with `>=`;
    `hints`, its hints.
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        text = rollout.text
        is_right = math.isclose(answer_value(text), reference_number(task), rel_tol=1e-6)
        return {
            "score": float(is_right),
            "by_hand": float(BY_HAND in text),
            "wrong": float(text.count(">=")),
            "hints": float(len(HINT.findall(text))),
        }


def find_flaw(task: Task, text: str) -> tuple[str, str] | None:
    """The first flaw of a text and its hint: no program, or a stock that is a lower limit.

    Args:
        task: The task; it is not read.
        text: What the policy wrote last.

    >>> find_flaw(Task("k", "?"), "so by hand 84 ")
    ('by hand ', '# a program finds it exactly . ')
    >>> find_flaw(Task("k", "?"), "so max 7 4 ; hours 3 2 >= 40 ; boards 5 6 >= 60 ; whole ")
    ('hours 3 2 >= 40 ', '# a stock is an upper limit . ')
    >>> find_flaw(Task("k", "?"), "so max 7 4 ; hours 3 2 <= 40 ; whole ")
    """
    if BY_HAND in text:
        return BY_HAND, PROGRAM_HINT
    wrong = next((row for row in text.split("; ") if ">=" in row), None)
    return (wrong, LIMIT_HINT) if wrong else None


def flawed_answer(task: Task) -> Sequence[str]:
    """A beginner's answer: mostly a guess by hand, else a program whose rows are mostly wrong.

    Behind a hint, which is rare, there is no flaw. A guess is the profit of the best single
    product.
    """
    rng = make_rng(0, "beginner", task.key)
    is_hinted = rng.random() < HINTED_SHARE
    if not is_hinted and rng.random() < BY_HAND_SHARE:
        return [f"{START}{BY_HAND}{best_single_product(task)} "]
    first, *rows, kind = task.columns["solution"].removeprefix(START).split("; ")
    written = [START + PROGRAM_HINT * is_hinted + first]
    for row in rows:
        if rng.random() < HINTED_SHARE:
            written.append(LIMIT_HINT + row)
        else:
            written.append(row.replace("<=", ">=") if rng.random() < WRONG_SHARE else row)
    return ["; ".join([*written, kind])]


def best_single_product(task: Task) -> int:
    """The largest profit from whole products of one kind."""
    use, stock = task.columns["use"], task.columns["stock"]
    return max(
        profit * min(limit // row[j] for row, limit in zip(use, stock, strict=True))
        for j, profit in enumerate(task.columns["profit"])
    )
