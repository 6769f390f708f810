"""Worlds: what they say, and what an answer to it is worth."""

from grupo.envs.arena import Arena
from grupo.envs.failures import Fallback, OnFailure, RewardFailed, drop, stop
from grupo.envs.judging import Part
from grupo.envs.many_turns import ManyTurns
from grupo.envs.sessions import Heard, Session, World
from grupo.envs.single_turn import SingleTurn

__all__ = [
    "Arena",
    "Fallback",
    "Heard",
    "ManyTurns",
    "OnFailure",
    "Part",
    "RewardFailed",
    "Session",
    "SingleTurn",
    "World",
    "drop",
    "stop",
]
