"""Puzzles with all their solutions, which a brute-force solver finds: alphametics and sudokus."""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random

from grupo.core.component import check_field, component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.prior_prompt import PriorStyle
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

EQUATION = re.compile(r"[A-Z0-9]+(?:[+-][A-Z0-9]+)*=[A-Z0-9]+")
MAX_LETTERS = 6  # 10! / 4! = 151,200 assignments
TREE = PriorStyle(
    "think",
    "Explore a tree of thoughts: list the candidates of each step, evaluate them, discard those"
    " that cannot be right, and go on with the others until all solutions are found.",
)
"""The prior prompt that asks for a tree; `Prior(TREE, AlphameticTasks())`."""
Grid = tuple[tuple[int, ...], ...]


@component
class AlphameticTasks:
    """Sums whose letters stand for different digits, with all solutions as the reference answer.

    An answer is a JSON list of solutions, each the list of the digits of the letters in
    alphabetical order; `SetOfSolutions` scores it. ToTRL, Wu et al. (arXiv:2505.12717).

    Args:
        size: Number of tasks.
        seed: Seed of the tasks.
        max_digits: Digits of the longer summand at most.
        max_letters: Different letters of a puzzle at most; the other digits are given.
    """

    size: PositiveInt = 1000
    seed: int = 0
    max_digits: PositiveInt = 2
    max_letters: PositiveInt = 3

    def __post_init__(self) -> None:
        check_field(self, "max_letters", self.max_letters <= MAX_LETTERS, f"1 to {MAX_LETTERS}")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, lambda i: alphametic_task(self._equation(i)))

    def _equation(self, index: int) -> str:
        rng = make_rng(self.seed, "alphametic", index)
        a, b = (rng.randrange(10 ** rng.randint(1, self.max_digits)) for _ in range(2))
        digits = sorted(set(f"{a}{b}{a + b}"))
        hidden = rng.sample(digits, min(self.max_letters, len(digits)))
        letters = dict(zip(hidden, "ABCDEF", strict=False))
        return "".join(letters.get(character, character) for character in f"{a}+{b}={a + b}")


def alphametic_task(equation: str) -> Task:
    """The task of an equation, with all its solutions.

    >>> alphametic_task("A+B=2").reference_answer
    [[0, 2], [2, 0]]
    """
    letters = sorted(set(re.findall("[A-Z]", equation)))
    prompt = (
        f"Each letter is a different digit: {equation}. List all solutions as JSON, each as"
        f" [{', '.join(letters)}].\n"
    )
    solutions = [list(solution) for solution in solve_alphametic(equation)]
    return Task(task_key(prompt), prompt, solutions, source="alphametic")


def solve_alphametic(equation: str) -> list[tuple[int, ...]]:
    """All assignments of different digits to the letters, in alphabetical order of the letters.

    A number of several digits does not begin with 0.

    Args:
        equation: Numbers of letters and digits with + and -, such as "AB+7=CC".

    Raises:
        ConfigError: It is no such equation, or has too many letters.

    >>> solve_alphametic("A-B=8")
    [(8, 0), (9, 1)]
    >>> solve_alphametic("A+A=BA")
    []
    """
    letters = sorted(set(re.findall("[A-Z]", equation)))
    if not EQUATION.fullmatch(equation) or len(letters) > MAX_LETTERS:
        raise ConfigError(
            f"equation: {equation!r}. Allowed: numbers of letters and digits with + and -, an ="
            f" before the last, and at most {MAX_LETTERS} letters."
        )
    found = permutations(range(10), len(letters))
    return [digits for digits in found if _holds(equation, dict(zip(letters, digits, strict=True)))]


def _holds(equation: str, digits: dict[str, int]) -> bool:
    text = "".join(str(digits.get(character, character)) for character in equation)
    if re.search(r"(?<!\d)0\d", text):
        return False
    left, _, right = text.partition("=")
    return sum(map(int, re.findall(r"[+-]?\d+", left))) == int(right)


@component
class SudokuTasks:
    """Sudokus of 4 x 4 cells with all their completions as the reference answer.

    An answer is a JSON list of grids, each a list of four rows; `SetOfSolutions` scores it.

    Args:
        size: Number of tasks.
        seed: Seed of the tasks.
        givens: Cells that are given; of few, a sudoku has several completions.
    """

    size: PositiveInt = 1000
    seed: int = 0
    givens: PositiveInt = 6

    def __post_init__(self) -> None:
        check_field(self, "givens", 4 <= self.givens <= 16, "4 to 16")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "sudoku", index)
        full = _random_grid(rng)
        given = set(rng.sample(range(16), self.givens))
        grid = tuple(
            tuple(full[row][column] if 4 * row + column in given else 0 for column in range(4))
            for row in range(4)
        )
        rows = "\n".join("".join(map(str, row)) for row in grid)
        prompt = (
            "Fill the zeros: each of 1 to 4 once in every row, column and 2 x 2 box. List all"
            f" solutions as JSON, each as a list of rows.\n{rows}\n"
        )
        solutions = [[list(row) for row in solution] for solution in solve_sudoku(grid)]
        return Task(task_key(prompt), prompt, solutions, source="sudoku")


def solve_sudoku(grid: Grid) -> list[Grid]:
    """All completions of a sudoku of 4 x 4 cells; 0 is an empty cell.

    >>> first = ((1, 2, 3, 4), (3, 4, 1, 2), (2, 1, 4, 3), (4, 3, 2, 0))
    >>> solve_sudoku(first)[0][3]
    (4, 3, 2, 1)
    """
    return list(_completions(grid))


def _completions(grid: Grid) -> Iterator[Grid]:
    empty = next((i for i in range(16) if not grid[i // 4][i % 4]), None)
    if empty is None:
        yield grid
        return
    row, column = divmod(empty, 4)
    for digit in _allowed(grid, row, column):
        changed = (*grid[row][:column], digit, *grid[row][column + 1 :])
        yield from _completions((*grid[:row], changed, *grid[row + 1 :]))


def _allowed(grid: Grid, row: int, column: int) -> Sequence[int]:
    box_row, box_column = row // 2 * 2, column // 2 * 2
    box = {grid[r][c] for r in (box_row, box_row + 1) for c in (box_column, box_column + 1)}
    used = {*grid[row], *(line[column] for line in grid), *box}
    return [digit for digit in range(1, 5) if digit not in used]


def _random_grid(rng: Random) -> Grid:
    """One of the 288 completed sudokus, each as likely as another."""
    return rng.choice(solve_sudoku(((0,) * 4,) * 4))


PAPER = Paper(
    title="ToTRL: Unlock LLM Tree-of-Thoughts Reasoning Potential through Puzzles Solving",
    kind="environment",
    use="Reasoning should branch: list candidates, discard them, and find all solutions.",
    tags=("exploration", "reward"),
    catalogue=("totrl",),
    source=Source("abstract", "arXiv 2505.12717; scores and prompt are the catalogue's reading"),
    checked=("golden",),
    deviations=(
        "The wording of the tree prompt, -1 for an answer that cannot be parsed and 0 for a part of"
        " the solutions are a choice: the abstract alone was open.",
    ),
    shown=("docs/small_claims.md#trees-of-thoughts",),
)
