"""Advantage estimators: from rewards to advantages.

An estimator is a function `(x, batch) -> x`. It takes the advantage so far, (R,) per rollout or
(N, T) per token, and returns the next one; the first receives `batch.reward`. `chain` composes
estimators, as optax composes gradient transformations: `chain(Center(), ScaleByStd())` is GRPO.
"""

from grupo.algo.advantages.baselines import Center, SignAdvantage
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
from grupo.algo.advantages.reward_shaping import OverlongPenalty, RescaleReward
from grupo.algo.advantages.sign_filter import NegativeSamples, PositiveSamples
from grupo.algo.advantages.turn_table import TurnDiscount

__all__ = [
    "AdvantageEstimator",
    "ByRewardTerm",
    "Center",
    "Chain",
    "ClampAdvantage",
    "GroupedBy",
    "MaskAdvantage",
    "NegativeSamples",
    "OverlongPenalty",
    "PerRewardTerm",
    "PositiveSamples",
    "RescaleReward",
    "ScaleByStd",
    "SignAdvantage",
    "StandardiseBatch",
    "TurnDiscount",
    "UseRewardTerm",
    "Whiten",
    "chain",
    "identity",
]
