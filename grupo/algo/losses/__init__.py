"""Losses: from advantages and the policy's signals to one number per token.

A loss is called as `loss(pi, batch) -> (N, T)`, before weights and mask; `pi` holds the signals of
the trained policy (`pi.logp`, `pi.entropy`), through which gradients flow. Losses add and scale:
`Clip(0.2, 0.28) + 0.001 * KL() + (-0.01) * Entropy()`.

base                   the interface of a loss; sums and multiples of losses
policy_gradient        PPO's clipped loss, REINFORCE, weighted REINFORCE
dynamic_clip           clip bounds that depend on the token or on the minibatch
turn_level             clipped ratios of whole turns
current_ratio          ratios to the policy at the start of the step
importance_correction  corrections for the mismatch between trainer and inference engine
regularizers           KL and other divergences from another policy, entropy
kl_unbiased            KL estimators whose gradient is that of KL
entropy_aware          losses that depend on the entropy of each token
masking                a loss on a subset of actions or rollouts
contrastive            comparison of the correct and the incorrect rollouts of a group
preference             pairs of rollouts compared by one score: DPO, SimPO, IPO, ORPO and others
quantiles              pairs of equal rank in the batch: AOT
pairs                  which rollouts of a group are a pair
scores                 scores of a rollout: log-ratios, likelihoods, odds
links                  the loss of a pair by its score difference
labelled_links         the loss of a chosen or of a rejected answer by its own score
pointwise              a rollout's own score against its label or target: NCA, BCO, SPPO
self_improvement       answers and their revisions, learned from the same pairs
listwise               all rollouts of a group in the order of their rewards
multi_reference        likelihood weighted towards several policies
by_context             a loss of its own for actions generated in another context
sft                    likelihood of demonstrations, alone or mixed with a policy loss
self_distill           distillation from a teacher whose prompt contains a correct rollout
top_tokens             metrics of the 10 likeliest tokens
critic                 losses of value heads

Data of several sources (policy rollouts and demonstrations) is in `grupo.algo.data_source`, whose
components are exported here too.
"""

from grupo.algo.data_source import EnoughCorrect, PerSourceMean, SeparateDemos, TooFewCorrect
from grupo.algo.losses.base import Loss, ScaledLoss, SumLoss, ZeroLoss
from grupo.algo.losses.by_context import SelectByContext
from grupo.algo.losses.contrastive import DiscriminativeLoss, TrustRegion
from grupo.algo.losses.critic import (
    ClippedValueLoss,
    OutcomeValueLoss,
    StepCrossEntropy,
    StepValueLoss,
    ValueLoss,
)
from grupo.algo.losses.current_ratio import RatioToCurrent
from grupo.algo.losses.dynamic_clip import AdaptiveClip, DynamicClipBounds
from grupo.algo.losses.entropy_aware import DualConstraint, EntropyAdaptiveClip
from grupo.algo.losses.importance_correction import (
    BoundedIS,
    CorrectedLoss,
    ImportanceWeight,
    IntervalMask,
    NormalisedWeight,
    RejectionMask,
    TruncatedIS,
    current_policy,
    old_policy,
)
from grupo.algo.losses.kl_unbiased import CorrectedKL, StraightThroughKL
from grupo.algo.losses.labelled_links import (
    HalfLogistic,
    NegatedLogistic,
    NoiseContrastive,
    no_loss,
)
from grupo.algo.losses.links import (
    ExponentialLink,
    Hinge,
    Logistic,
    LogisticExponentialMix,
    ReverseLogistic,
    RobustLogistic,
    Sigmoid,
    SquaredError,
)
from grupo.algo.losses.listwise import OrderPreserving, ParetoTarget, SortingNetwork
from grupo.algo.losses.masking import AllIncorrectGroups, IncorrectRollouts, WhereLoss
from grupo.algo.losses.multi_reference import MultiReferenceNLL
from grupo.algo.losses.pairs import (
    BestFeasibleAgainstWorst,
    adjacent_pairs,
    all_ordered_pairs,
    best_against_worst,
    successes_against_failures,
)
from grupo.algo.losses.pointwise import (
    BatchMeanShift,
    ChosenVariance,
    LabelledScore,
    RegressScore,
    WinRateTarget,
)
from grupo.algo.losses.policy_gradient import (
    Clip,
    ClipPreserveGradient,
    ClipWithin,
    Reinforce,
    WeightedReinforce,
)
from grupo.algo.losses.preference import (
    ChosenNLL,
    ConstantMargin,
    Preference,
    RewardMargin,
)
from grupo.algo.losses.quantiles import PairedQuantiles, UnpairedQuantiles
from grupo.algo.losses.regularizers import (
    JSD,
    KL,
    Entropy,
    EntropyBonus,
    ForwardKL,
    MetricsOnly,
    ReverseKL,
)
from grupo.algo.losses.scores import (
    HeadAtEnd,
    LogRatio,
    MeanLogRatio,
    MixedLogRatio,
    log_odds,
    rollout_logp,
)
from grupo.algo.losses.self_distill import SelfDistillOnFailure, TeacherConfidence
from grupo.algo.losses.self_improvement import SelfImprovement
from grupo.algo.losses.sft import (
    NLL,
    EntropyWeightedMix,
    MixSFT,
    PolicyShaping,
    SelectBySource,
)
from grupo.algo.losses.sibling_preference import SiblingPreference
from grupo.algo.losses.top_tokens import TopTokenMetrics
from grupo.algo.losses.turn_level import ReverseClip

__all__ = [
    "JSD",
    "KL",
    "NLL",
    "AdaptiveClip",
    "AllIncorrectGroups",
    "BatchMeanShift",
    "BestFeasibleAgainstWorst",
    "BoundedIS",
    "ChosenNLL",
    "ChosenVariance",
    "Clip",
    "ClipPreserveGradient",
    "ClipWithin",
    "ClippedValueLoss",
    "ConstantMargin",
    "CorrectedKL",
    "CorrectedLoss",
    "DiscriminativeLoss",
    "DualConstraint",
    "DynamicClipBounds",
    "EnoughCorrect",
    "Entropy",
    "EntropyAdaptiveClip",
    "EntropyBonus",
    "EntropyWeightedMix",
    "ExponentialLink",
    "ForwardKL",
    "HalfLogistic",
    "HeadAtEnd",
    "Hinge",
    "ImportanceWeight",
    "IncorrectRollouts",
    "IntervalMask",
    "LabelledScore",
    "LogRatio",
    "Logistic",
    "LogisticExponentialMix",
    "Loss",
    "MeanLogRatio",
    "MetricsOnly",
    "MixSFT",
    "MixedLogRatio",
    "MultiReferenceNLL",
    "NegatedLogistic",
    "NoiseContrastive",
    "NormalisedWeight",
    "OrderPreserving",
    "OutcomeValueLoss",
    "PairedQuantiles",
    "ParetoTarget",
    "PerSourceMean",
    "PolicyShaping",
    "Preference",
    "RatioToCurrent",
    "RegressScore",
    "Reinforce",
    "RejectionMask",
    "ReverseClip",
    "ReverseKL",
    "ReverseLogistic",
    "RewardMargin",
    "RobustLogistic",
    "ScaledLoss",
    "SelectByContext",
    "SelectBySource",
    "SelfDistillOnFailure",
    "SelfImprovement",
    "SeparateDemos",
    "SiblingPreference",
    "Sigmoid",
    "SortingNetwork",
    "SquaredError",
    "StepCrossEntropy",
    "StepValueLoss",
    "StraightThroughKL",
    "SumLoss",
    "TeacherConfidence",
    "TooFewCorrect",
    "TopTokenMetrics",
    "TruncatedIS",
    "TrustRegion",
    "UnpairedQuantiles",
    "ValueLoss",
    "WeightedReinforce",
    "WhereLoss",
    "WinRateTarget",
    "ZeroLoss",
    "adjacent_pairs",
    "all_ordered_pairs",
    "best_against_worst",
    "current_policy",
    "log_odds",
    "no_loss",
    "old_policy",
    "rollout_logp",
    "successes_against_failures",
]
