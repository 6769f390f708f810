"""Countdown: numbers to combine to a target, with depth-first searches as worked solutions.

Qin et al., 2025, arXiv:2504.07052, train models on such searches and on direct solutions.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.rng import make_rng

ANSWER = "answer "  # precedes the expression
BACK = "back"  # the search leaves a dead end
MAX_NUMBERS = 5  # of five numbers a search has some 100,000 nodes


class Term(NamedTuple):
    """A number of a state, and how it was made.

    Args:
        value: The number.
        expression: Its expression of the given numbers.
    """

    value: int
    expression: str


State = Sequence[Term]


@component
class CountdownTasks:
    """Combine all numbers, each once, to a target by + - * and brackets; each task has a solution.

    `CountdownExpression` scores an answer. The columns `numbers` and `target` are what
    `depth_first_trace` reads.

    Args:
        size: Number of tasks.
        seed: Seed of the tasks.
        count: Numbers of a task.
        largest: Largest of the numbers.

    >>> CountdownTasks(size=1).load()[0].prompt
    '5 3 8 to 29\\n'
    """

    size: PositiveInt = 1000
    seed: int = 0
    count: PositiveInt = 3
    largest: PositiveInt = 9

    def __post_init__(self) -> None:
        check_field(self, "count", 2 <= self.count <= MAX_NUMBERS, f"2 to {MAX_NUMBERS}")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "countdown", index)
        numbers = [rng.randint(1, self.largest) for _ in range(self.count)]
        state = start_state(numbers)
        while len(state) > 1:
            state = rng.choice([child for _, child in children(state)])
        return countdown_task(numbers, state[0].value)


def countdown_task(numbers: Sequence[int], target: int) -> Task:
    """The task to combine some numbers to a target.

    >>> countdown_task([2, 3, 7], 8).prompt
    '2 3 7 to 8\\n'
    """
    prompt = f"{' '.join(map(str, numbers))} to {target}\n"
    columns = {"numbers": list(numbers), "target": target}
    return Task(task_key(prompt), prompt, target, source="countdown", columns=columns)


def start_state(numbers: Sequence[int]) -> State:
    """The state in which no numbers are combined."""
    return tuple(Term(number, str(number)) for number in numbers)


def children(state: State) -> Iterator[tuple[str, State]]:
    """Equations that combine two numbers of a state, and the states after them.

    The pairs are in the order of the state; the difference is the larger number minus the smaller
    one, so that no number is negative. The combined number is the first of the new state.

    >>> [equation for equation, _ in children(start_state([2, 7]))]
    ['2+7=9', '7-2=5', '2*7=14']
    """
    for i, first in enumerate(state):
        for second in state[i + 1 :]:
            rest = tuple(term for term in state if term is not first and term is not second)
            larger, smaller = (second, first) if second.value > first.value else (first, second)
            yield _combined(first, "+", second, first.value + second.value, rest)
            yield _combined(larger, "-", smaller, larger.value - smaller.value, rest)
            yield _combined(first, "*", second, first.value * second.value, rest)


def _combined(a: Term, sign: str, b: Term, value: int, rest: State) -> tuple[str, State]:
    expression = f"{_bracketed(a)}{sign}{_bracketed(b)}"
    return f"{a.value}{sign}{b.value}={value}", (Term(value, expression), *rest)


def _bracketed(term: Term) -> str:
    return term.expression if term.expression.isdigit() else f"({term.expression})"


def solutions(numbers: Sequence[int], target: int) -> list[str]:
    """All expressions that the search can find, in its order.

    >>> solutions([2, 3, 7], 8)
    ['(3-2)+7', '(7-2)+3', '(3+7)-2', '(7-3)*2']
    """
    return list(_solutions(start_state(numbers), target))


def _solutions(state: State, target: int) -> Iterator[str]:
    if len(state) > 1:
        for _, child in children(state):
            yield from _solutions(child, target)
    elif state[0].value == target:
        yield state[0].expression


def depth_first_trace(numbers: Sequence[int], target: int) -> str:
    """A depth-first search in words up to its first solution, and the solution.

    >>> depth_first_trace([2, 3, 7], 8)
    '2+3=5 5+7=12 7-5=2 5*7=35 back 3-2=1 1+7=8 answer (3-2)+7'
    """
    return _trace(numbers, target, terse=False)


def terse_trace(numbers: Sequence[int], target: int) -> str:
    """The same search, with the results alone of the last equations: less is verbalised.

    >>> terse_trace([2, 3, 7], 8)
    '2+3=5 12 2 35 back 3-2=1 8 answer (3-2)+7'
    """
    return _trace(numbers, target, terse=True)


def _trace(numbers: Sequence[int], target: int, *, terse: bool) -> str:
    words: list[str] = []
    found = _search(start_state(numbers), target, words, terse=terse)
    if not found:
        raise ValueError(f"{list(numbers)} to {target} has no solution")
    return f"{' '.join(words)} {ANSWER}{found}"


def _search(state: State, target: int, words: list[str], *, terse: bool) -> str:
    """The first solution below a state, or ""; appends the words of the search."""
    for equation, child in children(state):
        is_last = len(child) == 1
        words.append(str(child[0].value) if terse and is_last else equation)
        if is_last and child[0].value == target:
            return child[0].expression
        if not is_last:
            if found := _search(child, target, words, terse=terse):
                return found
            words.append(BACK)
    return ""
