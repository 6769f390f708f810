"""A corridor with one bay, in which two robots must pass each other: a team game in words.

Cells 0 to 4 lie in a row, and the bay, cell 5, above cell 2. Robot A wants to be in cell 4, robot B
in cell 0, at the same time. One planner names the actions of a round: first that of A, then, having
read it, that of B. Both are executed together. A move into a wall, into the other robot, or through
it, does not happen.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache

from grupo.core.types import Observation, Task
from grupo.envs.game_env import StepResult

CELLS = 6
ACTIONS = ("left", "right", "up", "down", "stay")
GOAL = (4, 0)
MAX_ROUNDS = 15
MOVES = {(2, "up"): 5, (5, "down"): 2}
MOVES |= {(cell, "left"): cell - 1 for cell in range(1, 5)}
MOVES |= {(cell, "right"): cell + 1 for cell in range(4)}
Cells = tuple[int, int]  # of robots A and B


def after(cells: Cells, actions: Sequence[str]) -> Cells:
    """The cells after both actions.

    >>> after((0, 4), ("right", "left")), after((1, 2), ("right", "left"))
    ((1, 3), (1, 2))
    """
    a, b = (MOVES.get((cell, action), cell) for cell, action in zip(cells, actions, strict=True))
    if a == b or (a, b) == cells[::-1]:
        return cells
    return a, b


@cache
def distances() -> dict[Cells, int]:
    """Smallest number of rounds from each pair of cells to the goal."""
    steps = {
        cells: {after(cells, (a, b)) for a in ACTIONS for b in ACTIONS}
        for cells in ((a, b) for a in range(CELLS) for b in range(CELLS) if a != b)
    }
    rounds = {GOAL: 0}
    waiting = deque([GOAL])
    while waiting:
        reached = waiting.popleft()
        for cells, nexts in steps.items():
            if reached in nexts and cells not in rounds:
                rounds[cells] = rounds[reached] + 1
                waiting.append(cells)
    return rounds


def best_actions(cells: Cells, earlier: Sequence[str]) -> list[str]:
    """The actions of the next robot after which the goal can be reached in the fewest rounds."""

    def rounds(action: str) -> int:
        actions = [*earlier, action]
        later = ACTIONS if len(actions) == 1 else ("",)
        return min(distances()[after(cells, (*actions, b)[:2])] for b in later)

    fewest = min(map(rounds, ACTIONS))
    return [action for action in ACTIONS if rounds(action) == fewest]


def page(cells: Cells, earlier: Sequence[str]) -> str:
    """The observation before the next action of a round."""
    state = f"A in {cells[0]}, B in {cells[1]}.\n"
    return state + (f"A goes {earlier[0]}. Action of B:\n" if earlier else "Action of A:\n")


class Corridor:
    """A session. The task's column `cells` has the first cells; each round costs 1 / MAX_ROUNDS."""

    def reset(self, task: Task) -> Observation:
        """The first page."""
        a, b = task.columns["cells"]
        self.cells: Cells = (int(a), int(b))
        self.earlier: list[str] = []
        self.rounds = 0
        return page(self.cells, self.earlier)

    def step(self, text: str) -> StepResult:
        """The next page; the second action of a round executes both."""
        self.earlier.append(text.strip().lower().strip(" ."))
        if len(self.earlier) < 2:
            return StepResult(page(self.cells, self.earlier))
        self.cells, self.earlier = after(self.cells, self.earlier), []
        self.rounds += 1
        done = self.cells == GOAL or self.rounds == MAX_ROUNDS
        counts = {"rounds": 1.0, "arrived": float(self.cells == GOAL)}
        return StepResult(page(self.cells, []), -1 / MAX_ROUNDS, done, counts)


def starts() -> Iterator[Task]:
    """A task for each pair of cells but the goal."""
    for cells in distances():
        if cells != GOAL:
            yield Task(f"from {cells}", page(cells, []), columns={"cells": list(cells)})


def planned(cells: Cells, earlier: Sequence[str], rng: random.Random, right: float) -> str:
    """An action of a planner who names one of the best with probability `right`, else any."""
    return rng.choice(best_actions(cells, earlier) if rng.random() < right else ACTIONS)
