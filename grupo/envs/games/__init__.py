"""Games in text: FrozenLake, MiniGrid and the two-player games of TextArena."""

from grupo.envs.games.frozen_lake import FrozenLake, FrozenLakeTasks
from grupo.envs.games.minigrid import MiniGrid, MiniGridTasks
from grupo.envs.games.text_arena import TextArena, TextArenaTasks

__all__ = [
    "FrozenLake",
    "FrozenLakeTasks",
    "MiniGrid",
    "MiniGridTasks",
    "TextArena",
    "TextArenaTasks",
]
