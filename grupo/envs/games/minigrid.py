"""MiniGrid in text: the whole grid as letters, with the agent as an arrow."""

from collections.abc import Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.types import Task
from grupo.envs.games.gym_text import ActionNames
from grupo.envs.games.gymnasium_env import GymnasiumGame, make_gymnasium_env
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency

# in the order of MiniGrid's action numbers
ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")
ARROWS = (">", "v", "<", "^")
TILE_SYMBOLS = {"wall": "#", "floor": "_", "goal": "!", "lava": "~"}
DOOR_SYMBOLS = {"open": "O", "closed": "D", "locked": "L"}
OBJECT_SYMBOLS = {"key": "K", "ball": "A", "box": "B"}


@component
class MiniGrid:
    """Environment factory for a MiniGrid environment; a task's reference answer is its seed.

    The policy observes the mission and the whole grid without its outer wall, and answers with one
    of `ACTIONS`; any other text takes no step. The reward is MiniGrid's:
    1 - 0.9 * steps / allowed steps at the goal.

    Args:
        env_id: Gymnasium id of the environment.
    """

    env_id: str = "MiniGrid-Empty-Random-6x6-v0"

    def check(self) -> None:
        """Raises `ConfigError` if MiniGrid is not installed or has no such environment."""
        _make_env(self.env_id)

    def __call__(self) -> GymnasiumGame:
        return GymnasiumGame(
            lambda task: _make_env(self.env_id),
            lambda task: int(task.reference_answer),
            lambda env, _: render_grid(env),
            ActionNames(ACTIONS),
            introduce=lambda env: f"{env.mission}\n",
        )


def render_grid(env: Any) -> str:
    """The grid as text, one line per row: _ floor, # wall, ! goal, ~ lava, an arrow for the agent.

    Objects are two letters, the kind and the first letter of the colour: K key, A ball, B box, and
    D, O and L a door that is closed, open or locked. A carried object has a line of its own.
    """
    width = env.grid.width
    height = env.grid.height
    inside = range(1, width - 1)
    rows = [[_cell_symbol(env.grid.get(x, y)) for x in inside] for y in range(1, height - 1)]
    x, y = env.agent_pos
    rows[y - 1][x - 1] = ARROWS[env.agent_dir]
    carried = [f"carrying {_cell_symbol(env.carrying)}"] if env.carrying else []
    return "".join(f"{line}\n" for line in (*map("".join, rows), *carried))


def _cell_symbol(cell: Any) -> str:
    kind = cell.type if cell else "floor"
    if kind in TILE_SYMBOLS:
        return TILE_SYMBOLS[kind]
    letter = _door_symbol(cell) if kind == "door" else OBJECT_SYMBOLS[kind]
    return letter + cell.color[0]


def _door_symbol(door: Any) -> str:
    if door.is_locked:
        return DOOR_SYMBOLS["locked"]
    return DOOR_SYMBOLS["open" if door.is_open else "closed"]


def _make_env(env_id: str) -> Any:
    with optional_dependency("MiniGrid", "agents"):
        import minigrid  # noqa: F401  # registers its environments
    return make_gymnasium_env(env_id).unwrapped


@component
class MiniGridTasks:
    """Different layouts of a MiniGrid environment; the reference answer is a layout's seed.

    Args:
        count: Number of layouts.
        env_id: Gymnasium id of the environment.
        skip: Number of layouts to leave out at the beginning, for disjoint training and evaluation
            tasks.
    """

    count: int
    env_id: str = "MiniGrid-Empty-Random-6x6-v0"
    skip: int = 0

    def load(self) -> Sequence[Task]:
        """The tasks; the prompt is the first observation of the grid."""
        game = MiniGrid(self.env_id)()
        tasks: dict[str, Task] = {}
        wanted = self.skip + self.count
        for seed in range(100 * wanted):
            text = game.reset(Task("", "", seed))
            tasks.setdefault(text, Task(f"{self.env_id} {seed}", text, seed, source="minigrid"))
            if len(tasks) == wanted:
                return list(tasks.values())[self.skip :]
        available = len(tasks) - self.skip
        raise ConfigError(f"count: {self.count}. Allowed: at most the {available} that exist.")
