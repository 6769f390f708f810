"""Environments of the claims: tabular, vectorised, and small enough to train in seconds.

padded_answers  answers of variable length, in which filler tokens have no effect
many_modes      several correct answers per task, most of them rare
key_positions   a few tokens decide; rewards can be noisy or have several terms
corridor        a long walk with revisited states and a final reward
"""

from grupo.evidence.claims.environments.corridor import Corridor
from grupo.evidence.claims.environments.key_positions import KeyPositions
from grupo.evidence.claims.environments.many_modes import ManyModes
from grupo.evidence.claims.environments.padded_answers import PaddedAnswers
from grupo.evidence.claims.environments.tabular import (
    Attempts,
    EnvBuilder,
    Scores,
    TabularEnv,
    sample,
)

__all__ = [
    "Attempts",
    "Corridor",
    "EnvBuilder",
    "KeyPositions",
    "ManyModes",
    "PaddedAnswers",
    "Scores",
    "TabularEnv",
    "sample",
]
