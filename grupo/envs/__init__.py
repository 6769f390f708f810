"""Worlds: what they say, and what an answer to it is worth."""

from grupo.envs.failures import Fallback, OnFailure, RewardFailed, drop, stop
from grupo.envs.single_turn import Part, SingleTurn

__all__ = ["Fallback", "OnFailure", "Part", "RewardFailed", "SingleTurn", "drop", "stop"]
