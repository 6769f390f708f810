"""Gymnasium's FrozenLake in text: cross the ice to the goal without falling into a hole."""

from collections.abc import Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.types import Task
from grupo.envs.games.gym_text import ActionNames
from grupo.envs.games.gymnasium_env import MAX_SEED, GymnasiumGame, make_gymnasium_env
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key

MOVES = ("left", "down", "right", "up")  # in the order of Gymnasium's action numbers
ENV_ID = "FrozenLake-v1"
TILE_SYMBOLS = str.maketrans("SFHG", "__#!")
PLAYER_SYMBOL = "@"


@component
class FrozenLake:
    """Environment factory for the lake in a task's reference answer: rows of the letters S F H G.

    The policy observes the lake with its own position, and answers with one of `MOVES`; any other
    text leaves it where it is. The reward is 1 at the goal.

    Args:
        is_slippery: A move may slip sideways, with noise that derives from the task: rollouts of a
            task with equal moves slip alike.
    """

    is_slippery: bool = False

    def check(self) -> None:
        """Raises `ConfigError` if Gymnasium is not installed."""
        make_gymnasium_env(ENV_ID)

    def __call__(self) -> GymnasiumGame:
        return GymnasiumGame(self._make_env, _seed_of, _observe, ActionNames(MOVES))

    def _make_env(self, task: Task) -> Any:
        rows: Sequence[str] = task.reference_answer
        return make_gymnasium_env(ENV_ID, desc=list(rows), is_slippery=self.is_slippery).unwrapped


def _observe(env: Any, position: Any) -> str:
    return render_lake([row.tobytes().decode() for row in env.desc], int(position))


def _seed_of(task: Task) -> int:
    return derive_key(0, "lake", task.key) % MAX_SEED


def render_lake(rows: Sequence[str], position: int) -> str:
    """The lake as text: ice _, hole #, goal !, player @.

    Args:
        rows: Rows of the letters S F H G.
        position: Index of the player's tile, row by row.

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
    """Random lakes, all different, each with a path from start to goal.

    Args:
        count: Number of lakes.
        size: Rows and columns of a lake.
        frozen_fraction: Probability that a tile is ice rather than a hole.
        seed: Seed of the lakes.
    """

    count: int
    size: int = 4
    frozen_fraction: float = 0.8
    seed: int = 0

    def load(self) -> Sequence[Task]:
        """The tasks; the prompt is the first observation of the lake."""
        from gymnasium.envs.toy_text.frozen_lake import generate_random_map

        tasks: dict[str, Task] = {}
        for attempt in range(100 * self.count):
            seed = derive_key(self.seed, "lakes", attempt) % (1 << 31)
            rows = tuple(generate_random_map(self.size, self.frozen_fraction, seed))
            key = "/".join(rows)
            tasks.setdefault(key, Task(key, render_lake(rows, 0), rows, source="frozen lake"))
            if len(tasks) == self.count:
                return list(tasks.values())
        raise ConfigError(f"count: {self.count}. Allowed: at most the {len(tasks)} that exist.")
