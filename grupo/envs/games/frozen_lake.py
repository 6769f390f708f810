"""Gymnasium's FrozenLake in text: over the ice to the goal, and into no hole."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.rng import derive_key
from grupo.core.types import Task

MOVES = ("left", "down", "right", "up")  # by their numbers in Gymnasium
TILE_SYMBOLS = str.maketrans("SFHG", "__#!")
PLAYER_SYMBOL = "@"


@component
class FrozenLake:
    """Opens sessions on the lake that is a task's answer, its rows of S, F, H and G.

    The policy sees the lake and itself on it, and says a move; what is none moves nothing. The
    goal pays 1. On slippery ice the same moves slip alike in all rollouts of a task.
    """

    is_slippery: bool = False

    def check(self) -> None:
        """Refuse to play without Gymnasium."""
        if find_spec("gymnasium") is None:
            raise ConfigError("env: FrozenLake needs Gymnasium. Install the extra: grupo[agents].")

    def __call__(self) -> "FrozenLakeGame":
        return FrozenLakeGame(self.is_slippery)


class FrozenLakeGame:
    """A session on one lake."""

    def __init__(self, is_slippery: bool) -> None:
        self.is_slippery = is_slippery

    def reset(self, task: Task) -> str:
        """The lake, and the policy at its start."""
        from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

        self.rows: Sequence[str] = task.reference_answer
        self.env: Any = FrozenLakeEnv(desc=list(self.rows), is_slippery=self.is_slippery)
        place, _ = self.env.reset(seed=derive_key(0, "lake", task.key) % (1 << 31))
        return render_lake(self.rows, int(place))

    def step(self, text: str) -> tuple[str, float, bool]:
        """The lake after a move, 1 at the goal, and whether it is over: there or in a hole."""
        move = text.strip()
        if move not in MOVES:
            return render_lake(self.rows, int(self.env.s)), 0.0, False
        place, reward, over, _, _ = self.env.step(MOVES.index(move))
        return render_lake(self.rows, int(place)), float(reward), bool(over)


def render_lake(rows: Sequence[str], position: int) -> str:
    """The lake as it is shown, ice _, holes #, the goal ! and oneself @.

    >>> print(render_lake(("SF", "HG"), 1), end="")
    _@
    #!
    """
    letters = [list(row.translate(TILE_SYMBOLS)) for row in rows]
    width = len(rows[0])
    letters[position // width][position % width] = PLAYER_SYMBOL
    return "".join(f"{''.join(row)}\n" for row in letters)


@component
class FrozenLakeTasks:
    """`count` different lakes that can be crossed, `size` wide, of which `ice` is the share."""

    count: int
    size: int = 4
    frozen_fraction: float = 0.8
    seed: int = 0

    def load(self) -> Sequence[Task]:
        """Their tasks, the lake as it is shown first for a prompt."""
        from gymnasium.envs.toy_text.frozen_lake import generate_random_map

        found: dict[str, Task] = {}
        for attempt in range(100 * self.count):
            seed = derive_key(self.seed, "lakes", attempt) % (1 << 31)
            rows = tuple(generate_random_map(self.size, self.frozen_fraction, seed))
            key = "/".join(rows)
            found.setdefault(key, Task(key, render_lake(rows, 0), rows, source="frozen lake"))
            if len(found) == self.count:
                return list(found.values())
        raise ConfigError(
            f"count: {self.count}. Allowed: at most the {len(found)} that were found."
        )
