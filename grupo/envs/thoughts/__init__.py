"""Graphs of thoughts: a policy names operations, and a solver carries them out."""

from grupo.envs.thoughts.env import ThoughtGraph
from grupo.envs.thoughts.sorting import Sorting, alphabetical, numerical

__all__ = ["Sorting", "ThoughtGraph", "alphabetical", "numerical"]
