"""Problems of a graph of thoughts: items to sort, with the prompts of the solver and its errors."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from grupo.core.component import component
from grupo.core.types import Task
from grupo.envs.thoughts.graph import Answer
from grupo.util.errors import ConfigError

BRACKETS = re.compile(r"\[([^\[\]]*)\]")
SEPARATORS = re.compile(r"[\s,;]+")


class ThoughtProblem(Protocol):
    """A problem of items, for each part of which there are prompts and a count of errors."""

    def items(self, task: Task) -> Answer:
        """The items of the whole problem; raises `ConfigError` if the task has none."""
        ...

    def solve_prompt(self, items: Sequence[str]) -> str:
        """The solver's prompt for some items."""
        ...

    def refine_prompt(self, items: Sequence[str], answer: Sequence[str], errors: int) -> str:
        """The solver's prompt to correct an answer for some items."""
        ...

    def merge_prompt(self, answers: Sequence[Sequence[str]]) -> str:
        """The solver's prompt to join the answers for several parts."""
        ...

    def read(self, reply: str) -> Answer:
        """The answer in a reply of the solver."""
        ...

    def errors(self, items: Sequence[str], answer: Sequence[str]) -> int:
        """Number of errors in an answer for some items; 0 if it is right."""
        ...


def numerical(item: str) -> float:
    """The number that an item is; infinity for other texts.

    >>> sorted(["10", "9", "x"], key=numerical)
    ['9', '10', 'x']
    """
    try:
        return float(item)
    except ValueError:
        return float("inf")


def alphabetical(item: str) -> str:
    """The item without regard to case.

    >>> sorted(["pear", "Fig"], key=alphabetical)
    ['Fig', 'pear']
    """
    return item.casefold()


@component
class Sorting:
    """The items of the task's column `items`, to be sorted.

    The errors of an answer are its neighbours in the wrong order, plus, for each distinct item, the
    difference of its counts in the problem and in the answer. Source: the score of the sorting task
    of Graph of Thoughts, Besta et al., arXiv:2308.09687.

    Args:
        key: Value by which items are sorted, such as `numerical` or `alphabetical`.

    >>> Sorting().errors(["3", "1", "2"], ["1", "3", "2"])
    1
    >>> Sorting().errors(["3", "1", "2"], ["1", "2", "4"])  # 3 is missing, 4 is added
    2
    """

    key: Callable[[str], Any] = numerical

    def items(self, task: Task) -> Answer:
        """The task's items as texts."""
        items = task.columns.get("items")
        if not isinstance(items, list | tuple) or not items:
            raise ConfigError(
                f"tasks: task {task.key!r} has items {items!r:.60}. Allowed: a column `items` with"
                " a list of at least one item to sort."
            )
        return tuple(map(str, items))

    def solve_prompt(self, items: Sequence[str]) -> str:
        """Asks for the sorted list."""
        return f"Sort this list in ascending order: {shown(items)}\nReply with the list only."

    def refine_prompt(self, items: Sequence[str], answer: Sequence[str], errors: int) -> str:
        """Asks to correct a list, of which the number of errors is known."""
        return (
            f"The list {shown(items)} was to be sorted in ascending order. This answer has {errors}"
            f" errors: {shown(answer)}\nReply with the right list only."
        )

    def merge_prompt(self, answers: Sequence[Sequence[str]]) -> str:
        """Asks to merge sorted lists."""
        lists = " ".join(map(shown, answers))
        return f"Merge these sorted lists into one sorted list: {lists}\nReply with the list only."

    def read(self, reply: str) -> Answer:
        """The items in the last brackets of the reply, or in all of it if it has none.

        >>> Sorting().read("It is [1, 2]."), Sorting().read("1 2")
        (('1', '2'), ('1', '2'))
        """
        found = BRACKETS.findall(reply)
        return tuple(filter(None, SEPARATORS.split(found[-1] if found else reply)))

    def errors(self, items: Sequence[str], answer: Sequence[str]) -> int:
        """Neighbours in the wrong order, and items that are missing or added."""
        difference = Counter(items)
        difference.subtract(answer)
        wrong_order = sum(self.key(a) > self.key(b) for a, b in pairwise(answer))
        return wrong_order + sum(map(abs, difference.values()))


def shown(items: Sequence[str]) -> str:
    """A list as prompts have it.

    >>> shown(["1", "2"])
    '[1, 2]'
    """
    return f"[{', '.join(items)}]"
