"""The last digit of a sum of digits, with worked solutions in four styles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_lowercase

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.rng import make_rng

ANSWER = "is "  # precedes the answer
TOTAL = "T"  # precedes a running total, which thus is no word of its own: a hint may contain it
HINT_PREFIX = "? "  # between the terms and a hint
START = ": "  # of an answer
MIN_TERMS, MAX_TERMS = 2, ascii_lowercase.index(TOTAL.lower())
Terms = Mapping[str, int]  # digits by their letter


@component
class DigitSums:
    """The last digit of a sum of digits, each with a letter: `a3 b7 c8 `.

    Columns: each style of `STYLES` has a worked solution, and `solution` is the one of `left`;
    `hint` is `solution` without its last addition and its answer, `terms` has the digits by letter,
    and `given` is the number of additions in the prompt.

    Args:
        min_terms: Fewest digits of a sum, at least 2, and 3 with a hint_share.
        max_terms: Most digits, at most 19, since `T` precedes totals.
        size: Number of tasks.
        seed: Seed of the tasks.
        hint_share: Share of tasks whose prompt ends with a part of the solution: `? : a3 b7T0 `.

    >>> task = DigitSums(3, 3, size=1).load()[0]
    >>> task.prompt, task.columns["solution"], task.reference_answer
    ('a6 b2 c2 ', ': a6 b2T8 c2T0 is 0', '0')
    >>> task.prompt + HINT_PREFIX + task.columns["hint"]
    'a6 b2 c2 ? : a6 b2T8 '
    """

    min_terms: PositiveInt = 3
    max_terms: PositiveInt = 10
    size: PositiveInt = 1000
    seed: int = 0
    hint_share: Probability = 0.0

    def __post_init__(self) -> None:
        fewest = MIN_TERMS + (self.hint_share > 0)  # a hint has an addition, and leaves one
        check_field(self, "min_terms", self.min_terms >= fewest, f"{fewest} or more")
        is_allowed = self.min_terms <= self.max_terms <= MAX_TERMS
        check_field(self, "max_terms", is_allowed, f"min_terms to {MAX_TERMS}")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "digit sum", index)
        count = rng.randint(self.min_terms, self.max_terms)
        terms = {letter: rng.randrange(10) for letter in ascii_lowercase[:count]}
        given = rng.randint(1, count - 2) if rng.random() < self.hint_share else 0
        solutions = {style: worked_solution(terms, order(terms)) for style, order in STYLES.items()}
        prompt = sum_prompt(terms.values())
        if given:
            prompt += HINT_PREFIX + first_additions(solutions["left"], given)
        columns = {
            "terms": terms,
            "given": given,
            **solutions,
            "solution": solutions["left"],
            "hint": first_additions(solutions["left"], count - 2),
        }
        return Task(task_key(prompt), prompt, str(sum(terms.values()) % 10), "digit_sums", columns)


def sum_prompt(digits: Iterable[int | str]) -> str:
    """The prompt of the sum of some digits, at most 19.

    >>> sum_prompt([6, 2, 2])
    'a6 b2 c2 '
    """
    return "".join(
        f"{letter}{digit} " for letter, digit in zip(ascii_lowercase, digits, strict=False)
    )


def first_additions(solution: str, count: int) -> str:
    """The beginning of a worked solution up to its `count`-th addition.

    >>> first_additions(": a3 b7T0 c8T8 is 8", 1)
    ': a3 b7T0 '
    """
    return "".join(f"{word} " for word in solution.split(" ")[: count + 2])


def add_digits(a: int, b: int) -> int:
    """The last digit of a sum."""
    return (a + b) % 10


def worked_solution(
    terms: Terms, order: Sequence[str], add: Callable[[int, int], int] = add_digits
) -> str:
    """The last digit of the running total after each addition, and the answer.

    Args:
        terms: Digits by their letter.
        order: The letters in the order in which their digits are added.
        add: Returns the result of an addition.

    >>> terms = {"a": 3, "b": 7, "c": 8, "d": 4}
    >>> for style, order in STYLES.items():
    ...     print(style, worked_solution(terms, order(terms)))
    left : a3 b7T0 c8T8 d4T2 is 2
    right : d4 c8T2 b7T9 a3T2 is 2
    sorted : a3 d4T7 b7T4 c8T2 is 2
    alternating : a3 c8T1 b7T8 d4T2 is 2
    """
    first, *others = order
    total = terms[first]
    text = f"{START}{first}{total} "
    for letter in others:
        total = add(total, terms[letter])
        text += f"{letter}{terms[letter]}{TOTAL}{total} "
    return f"{text}{ANSWER}{total}"


def _left(terms: Terms) -> Sequence[str]:
    return [*terms]


def _right(terms: Terms) -> Sequence[str]:
    return [*terms][::-1]


def _sorted(terms: Terms) -> Sequence[str]:
    return sorted(terms, key=lambda letter: terms[letter])


def _alternating(terms: Terms) -> Sequence[str]:
    return [*[*terms][::2], *[*terms][1::2]]


# the order in which digits are added: sorted by their size, or every second one first
STYLES: Mapping[str, Callable[[Terms], Sequence[str]]] = {
    "left": _left,
    "right": _right,
    "sorted": _sorted,
    "alternating": _alternating,
}
