"""Losses: from advantages and the policy's signals to one number per action.

A loss is called as `(pi, batch) -> (N, ANSWER_LENGTH)`, unweighted and unmasked. Losses form a vector space:
`Clip(0.2, 0.28) + 0.001 * KL() + (-0.01) * Entropy()`.

base         what a loss is, its sums and multiples
surrogate    the policy gradient: clipped, reweighted, plain
bounds       clips whose bounds differ by token or by minibatch
turns        clips of the ratios of whole turns
correct      corrections for what another policy sampled
regularise   divergences from another policy, estimated or exact, and entropy
kl           estimates of KL whose gradient is that of KL
entropic     what depends on how uncertain each action was
where        a loss on some actions or rollouts only
contrast     the rollouts of a group against one another
preferences  the best of a group against its worst
sources      own rollouts and demonstrations told apart: their credits and weights
imitate      the likelihood of what somebody else said, alone or mixed in
mend         a teacher for wrong rollouts that have a right sibling
values       what a critic learns from
rows         numbers of actions summed up by row

Pieces are exported here; the functions they are given are imported from their modules.
"""

from grupo.algo.data_source import EnoughCorrect, PerSourceMean, SeparateDemos, TooFewCorrect
from grupo.algo.losses.base import Loss, ScaledLoss, SumLoss, ZeroLoss
from grupo.algo.losses.contrastive import DiscriminativeLoss, TrustRegion
from grupo.algo.losses.critic import ClippedValueLoss, OutcomeValueLoss, ValueLoss
from grupo.algo.losses.dpo import DPOBestWorst
from grupo.algo.losses.dynamic_clip import AdaptiveClip, DynamicClipBounds
from grupo.algo.losses.entropy_aware import DualConstraint, EntropyAdaptiveClip
from grupo.algo.losses.importance_correction import (
    CorrectedLoss,
    ImportanceWeight,
    IntervalMask,
    NormalisedWeight,
    RejectionMask,
    TruncatedIS,
)
from grupo.algo.losses.kl_unbiased import CorrectedKL, StraightThroughKL
from grupo.algo.losses.masking import AllIncorrectGroups, IncorrectRollouts, WhereLoss
from grupo.algo.losses.policy_gradient import (
    Clip,
    ClipPreserveGradient,
    ClipWithin,
    Reinforce,
    WeightedReinforce,
)
from grupo.algo.losses.regularizers import (
    JSD,
    KL,
    Entropy,
    EntropyBonus,
    ForwardKL,
    MetricsOnly,
    ReverseKL,
)
from grupo.algo.losses.self_distill import SelfDistillOnFailure, TeacherConfidence
from grupo.algo.losses.sft import NLL, EntropyWeightedMix, MixSFT, SelectBySource
from grupo.algo.losses.turn_level import ReverseClip

__all__ = [
    "JSD",
    "KL",
    "NLL",
    "AdaptiveClip",
    "AllIncorrectGroups",
    "Clip",
    "ClipPreserveGradient",
    "ClipWithin",
    "ClippedValueLoss",
    "CorrectedKL",
    "CorrectedLoss",
    "DPOBestWorst",
    "DiscriminativeLoss",
    "DualConstraint",
    "DynamicClipBounds",
    "EnoughCorrect",
    "Entropy",
    "EntropyAdaptiveClip",
    "EntropyBonus",
    "EntropyWeightedMix",
    "ForwardKL",
    "ImportanceWeight",
    "IncorrectRollouts",
    "IntervalMask",
    "Loss",
    "MetricsOnly",
    "MixSFT",
    "NormalisedWeight",
    "OutcomeValueLoss",
    "PerSourceMean",
    "Reinforce",
    "RejectionMask",
    "ReverseClip",
    "ReverseKL",
    "ScaledLoss",
    "SelectBySource",
    "SelfDistillOnFailure",
    "SeparateDemos",
    "StraightThroughKL",
    "SumLoss",
    "TeacherConfidence",
    "TooFewCorrect",
    "TruncatedIS",
    "TrustRegion",
    "ValueLoss",
    "WeightedReinforce",
    "WhereLoss",
    "ZeroLoss",
]
