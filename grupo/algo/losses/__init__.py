"""Losses: from advantages and the policy's signals to one number per action.

A loss is called as `(pi, batch) -> (N, T)`, unweighted and unmasked. Losses form a vector space:
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

from grupo.algo.data_source import Able, Apart, EachSource, Stuck
from grupo.algo.losses.base import Loss, Nothing, Scaled, Sum
from grupo.algo.losses.contrastive import Discriminate, TrustRegion
from grupo.algo.losses.critic import FitClippedValue, FitOutcome, FitValue
from grupo.algo.losses.dpo import BestAgainstWorst
from grupo.algo.losses.dynamic_clip import Balanced, DynamicBounds
from grupo.algo.losses.entropy_aware import DualConstraint, Heterogeneous
from grupo.algo.losses.importance_correction import (
    Accepted,
    Corrected,
    Importance,
    Normalised,
    Truncated,
    Within,
)
from grupo.algo.losses.kl_unbiased import CorrectedKL, StraightThroughKL
from grupo.algo.losses.masking import AllWrong, Only, Wrong
from grupo.algo.losses.policy_gradient import Clip, ClipWithin, KeepGradient, Reinforce, Reweighted
from grupo.algo.losses.regularizers import (
    JSD,
    KL,
    Entropy,
    EntropyBonus,
    ForwardKL,
    ReverseKL,
    Watched,
)
from grupo.algo.losses.self_distill import Confident, Routed
from grupo.algo.losses.sft import Blend, ByRowEntropy, BySource, Likelihood
from grupo.algo.losses.turn_level import ReverseClip

__all__ = [
    "JSD",
    "KL",
    "Able",
    "Accepted",
    "AllWrong",
    "Apart",
    "Balanced",
    "BestAgainstWorst",
    "Blend",
    "ByRowEntropy",
    "BySource",
    "Clip",
    "ClipWithin",
    "Confident",
    "Corrected",
    "CorrectedKL",
    "Discriminate",
    "DualConstraint",
    "DynamicBounds",
    "EachSource",
    "Entropy",
    "EntropyBonus",
    "FitClippedValue",
    "FitOutcome",
    "FitValue",
    "ForwardKL",
    "Heterogeneous",
    "Importance",
    "KeepGradient",
    "Likelihood",
    "Loss",
    "Normalised",
    "Nothing",
    "Only",
    "Reinforce",
    "ReverseClip",
    "ReverseKL",
    "Reweighted",
    "Routed",
    "Scaled",
    "StraightThroughKL",
    "Stuck",
    "Sum",
    "Truncated",
    "TrustRegion",
    "Watched",
    "Within",
    "Wrong",
]
