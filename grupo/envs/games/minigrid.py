"""MiniGrid in text: a grid of squares seen from above, and oneself as an arrow on it."""

import os
from collections.abc import Sequence
from copy import deepcopy
from importlib.util import find_spec
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Task

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")  # by their numbers
ARROWS = (">", "v", "<", "^")
TILE_SYMBOLS = {"wall": "#", "floor": "_", "goal": "!", "lava": "~"}
DOOR_SYMBOLS = {"open": "O", "closed": "D", "locked": "L"}


@component
class MiniGrid:
    """Opens sessions of a MiniGrid environment on the layout of the seed that is a task's answer.

    The policy hears its mission, sees the whole grid without the wall around it, and says an
    action; what is none is no step. It is paid as MiniGrid pays: 1 - 0.9 of the steps taken of
    those allowed.
    """

    env_id: str = "MiniGrid-Empty-Random-6x6-v0"

    def check(self) -> None:
        """Refuse to play without MiniGrid, or what it does not have."""
        _make_env(self.env_id)

    def __call__(self) -> "MiniGridGame":
        return MiniGridGame(self.env_id)


class MiniGridGame:
    """A session in one layout."""

    def __init__(self, env_id: str) -> None:
        self.env = _make_env(env_id)

    def __deepcopy__(self, memo: dict[int, Any]) -> "MiniGridGame":
        for shared in (self.env.observation_space, self.env.action_space):  # half of the work
            memo[id(shared)] = shared
        other = MiniGridGame.__new__(MiniGridGame)
        other.env = deepcopy(self.env, memo)
        return other

    def reset(self, task: Task) -> str:
        """The mission, and the grid as it is found."""
        self.env.reset(seed=int(task.reference_answer))
        return f"{self.env.mission}\n{render_grid(self.env)}"

    def step(self, text: str) -> tuple[str, float, bool]:
        """The grid after an action, what it is paid, and whether it is over."""
        action = text.strip()
        if action not in ACTIONS:
            return render_grid(self.env), 0.0, False
        _, reward, over, late, _ = self.env.step(ACTIONS.index(action))
        return render_grid(self.env), float(reward), bool(over or late)


def render_grid(env: Any) -> str:
    """A line for each row: _ floor, # wall, ! goal, ~ lava, an arrow oneself.

    Things are two letters, what they are and their colour's first: K key, A ball, B box, D, O and L
    a door that is closed, open or locked. What one carries has a line of its own.
    """
    width, height = env.grid.width, env.grid.height
    inside = range(1, width - 1)
    rows = [[_cell_symbol(env.grid.get(x, y)) for x in inside] for y in range(1, height - 1)]
    x, y = env.agent_pos
    rows[y - 1][x - 1] = ARROWS[env.agent_dir]
    carried = [f"carrying {_cell_symbol(env.carrying)}"] if env.carrying else []
    return "".join(f"{line}\n" for line in (*map("".join, rows), *carried))


def _cell_symbol(thing: Any) -> str:
    kind = thing.type if thing else "floor"
    if kind in TILE_SYMBOLS:
        return TILE_SYMBOLS[kind]
    state = "open" if getattr(thing, "is_open", False) else "closed"
    state = "locked" if getattr(thing, "is_locked", False) else state
    letter = DOOR_SYMBOLS[state] if kind == "door" else {"key": "K", "ball": "A", "box": "B"}[kind]
    return letter + thing.color[0]


def _make_env(env_id: str) -> Any:
    if find_spec("minigrid") is None:
        raise ConfigError("env: MiniGrid is not installed. Install the extra: grupo[agents].")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it is imported, and greets
    import gymnasium
    import minigrid  # noqa: F401  # registers its environments

    try:
        return gymnasium.make(env_id, disable_env_checker=True).unwrapped
    except gymnasium.error.Error as error:
        raise ConfigError(f"env: {env_id!r} is no environment of MiniGrid's: {error}.") from error


@component
class MiniGridTasks:
    """`count` different layouts of a MiniGrid environment, those after the first `skip`.

    The answer of a task is the seed of its layout.
    """

    count: int
    env_id: str = "MiniGrid-Empty-Random-6x6-v0"
    skip: int = 0

    def load(self) -> Sequence[Task]:
        """Their tasks, the grid as it is seen first for a prompt."""
        session, found, wanted = (
            MiniGridGame(self.env_id),
            dict[str, Task](),
            self.skip + self.count,
        )
        for seed in range(100 * wanted):
            text = session.reset(Task("", "", seed))
            found.setdefault(text, Task(f"{self.env_id} {seed}", text, seed, source="minigrid"))
            if len(found) == wanted:
                return list(found.values())[self.skip :]
        there = len(found) - self.skip
        raise ConfigError(f"count: {self.count}. Allowed: at most the {there} that were found.")
