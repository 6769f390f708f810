"""Worlds to be played in text."""

from grupo.envs.worlds.frozen_lake import FrozenLake, Lakes
from grupo.envs.worlds.minigrid import Grids, MiniGrid

__all__ = ["FrozenLake", "Grids", "Lakes", "MiniGrid"]
