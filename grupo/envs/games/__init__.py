"""Worlds to be played in text."""

from grupo.envs.games.frozen_lake import FrozenLake, Lakes
from grupo.envs.games.minigrid import Grids, MiniGrid
from grupo.envs.games.text_arena import Games, TextArena

__all__ = ["FrozenLake", "Games", "Grids", "Lakes", "MiniGrid", "TextArena"]
