"""Worlds: what they say, and what an answer to it is worth."""

from grupo.envs.multi_turn import MultiTurn
from grupo.envs.multiplayer import MultiplayerEnv
from grupo.envs.on_failure import (
    FailureHandler,
    FallbackReward,
    RewardError,
    drop_rollout,
    raise_error,
)
from grupo.envs.scoring import RewardTerm
from grupo.envs.session_cache import EnvFactory, GameEnv, StepResult
from grupo.envs.single_turn import SingleTurn

__all__ = [
    "EnvFactory",
    "FailureHandler",
    "FallbackReward",
    "GameEnv",
    "MultiTurn",
    "MultiplayerEnv",
    "RewardError",
    "RewardTerm",
    "SingleTurn",
    "StepResult",
    "drop_rollout",
    "raise_error",
]
