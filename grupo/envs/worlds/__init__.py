"""Worlds to be played in text."""

from grupo.envs.worlds.frozen_lake import FrozenLake, Lakes
from grupo.envs.worlds.minigrid import Grids, MiniGrid
from grupo.envs.worlds.text_arena import Games, TextArena

__all__ = ["FrozenLake", "Games", "Grids", "Lakes", "MiniGrid", "TextArena"]
