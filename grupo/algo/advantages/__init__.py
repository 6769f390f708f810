"""Credit: from rewards to advantages.

A credit is a function `(x, batch) -> x`: it takes the credit so far, (R,) or (N, T), and returns
the next. The first receives `batch.reward`; `chain` composes them, as optax composes gradient
transformations.
"""

from grupo.algo.advantages.baselines import Center
from grupo.algo.advantages.combinators import (
    AdvantageEstimator,
    ByRewardTerm,
    Chain,
    ClampAdvantage,
    GroupedBy,
    MaskAdvantage,
    PerRewardTerm,
    UseRewardTerm,
    chain,
    identity,
)
from grupo.algo.advantages.normalization import ScaleByStd, StandardiseBatch, Whiten
from grupo.algo.advantages.reward_shaping import OverlongPenalty
from grupo.algo.advantages.turn_table import TurnDiscount

__all__ = [
    "AdvantageEstimator",
    "ByRewardTerm",
    "Center",
    "Chain",
    "ClampAdvantage",
    "GroupedBy",
    "MaskAdvantage",
    "OverlongPenalty",
    "PerRewardTerm",
    "ScaleByStd",
    "StandardiseBatch",
    "TurnDiscount",
    "UseRewardTerm",
    "Whiten",
    "chain",
    "identity",
]
