"""Environments: they answer the policy with observations and score its rollouts.

`SingleTurn` scores one answer per prompt, `MultiTurn` runs a game or tools over several turns,
`MultiplayerEnv` lets rollouts play against one another.
"""

from grupo.envs.code_tests import CodeTests
from grupo.envs.game_env import EnvFactory, GameEnv, StepResult
from grupo.envs.linear_programs import GLPSOL, Optimum
from grupo.envs.multi_turn import MultiTurn
from grupo.envs.multiplayer import MultiplayerEnv
from grupo.envs.on_failure import (
    FailureHandler,
    FallbackReward,
    RewardError,
    drop_rollout,
    raise_error,
)
from grupo.envs.printed_number import PrintedNumber
from grupo.envs.printed_value import PrintedValue
from grupo.envs.problems import PointsInSquare
from grupo.envs.program_check import CompiledTests, ProgramCheck, ended_without_error
from grupo.envs.reward_term import RewardTerm
from grupo.envs.single_turn import SingleTurn
from grupo.envs.unscored import Unscored

__all__ = [
    "GLPSOL",
    "CodeTests",
    "CompiledTests",
    "EnvFactory",
    "FailureHandler",
    "FallbackReward",
    "GameEnv",
    "MultiTurn",
    "MultiplayerEnv",
    "Optimum",
    "PointsInSquare",
    "PrintedNumber",
    "PrintedValue",
    "ProgramCheck",
    "RewardError",
    "RewardTerm",
    "SingleTurn",
    "StepResult",
    "Unscored",
    "drop_rollout",
    "ended_without_error",
    "raise_error",
]
