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

from grupo.losses.base import Loss, Nothing, Scaled, Sum
from grupo.losses.bounds import Balanced, DynamicBounds
from grupo.losses.contrast import Discriminate, TrustRegion
from grupo.losses.correct import Accepted, Corrected, Importance, Normalised, Truncated, Within
from grupo.losses.entropic import DualConstraint, Heterogeneous
from grupo.losses.imitate import Blend, ByRowEntropy, BySource, Likelihood
from grupo.losses.kl import CorrectedKL, StraightThroughKL
from grupo.losses.mend import Confident, Routed
from grupo.losses.preferences import BestAgainstWorst
from grupo.losses.regularise import (
    JSD,
    KL,
    Entropy,
    EntropyBonus,
    ForwardKL,
    ReverseKL,
    Watched,
)
from grupo.losses.sources import Able, Apart, EachSource, Stuck
from grupo.losses.surrogate import Clip, ClipWithin, KeepGradient, Reinforce, Reweighted
from grupo.losses.turns import ReverseClip
from grupo.losses.values import FitClippedValue, FitOutcome, FitValue
from grupo.losses.where import AllWrong, Only, Wrong

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
