"""Worlds to be played in text."""

from grupo.envs.worlds.frozen_lake import FrozenLake, Lakes

__all__ = ["FrozenLake", "Lakes"]
