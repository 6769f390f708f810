"""Losses: from advantages and the policy's signals to one number per action.

A loss is called as `(pi, batch) -> (N, T)`, unweighted and unmasked. Losses form a vector space:
`Clip(0.2, 0.28) + 0.001 * KL() + (-0.01) * Entropy()`.
"""

from grupo.losses.base import Loss, Scaled, Sum
from grupo.losses.imitate import Likelihood
from grupo.losses.regularise import KL, Entropy
from grupo.losses.surrogate import Clip, Reinforce

__all__ = ["KL", "Clip", "Entropy", "Likelihood", "Loss", "Reinforce", "Scaled", "Sum"]
