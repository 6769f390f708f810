"""Games in text: Gymnasium's environments, FrozenLake, MiniGrid and the games of TextArena."""

from grupo.envs.games.frozen_lake import FrozenLake, FrozenLakeTasks
from grupo.envs.games.gym_text import ActionNames
from grupo.envs.games.gymnasium_env import Gymnasium, GymnasiumTasks
from grupo.envs.games.invalid_actions import EndEpisode, RepeatObservation, TakeAction
from grupo.envs.games.minigrid import MiniGrid, MiniGridTasks
from grupo.envs.games.text_arena import TextArena, TextArenaTasks

__all__ = [
    "ActionNames",
    "EndEpisode",
    "FrozenLake",
    "FrozenLakeTasks",
    "Gymnasium",
    "GymnasiumTasks",
    "MiniGrid",
    "MiniGridTasks",
    "RepeatObservation",
    "TakeAction",
    "TextArena",
    "TextArenaTasks",
]
