"""Worlds: what they say, and what an answer to it is worth."""

from grupo.envs.multi_turn import ManyTurns
from grupo.envs.multiplayer import Arena
from grupo.envs.on_failure import Fallback, OnFailure, RewardFailed, drop, stop
from grupo.envs.scoring import Part
from grupo.envs.session_cache import Heard, Session, World
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
