"""Losses that many papers share, for each action or averaged over a minibatch."""

from collections.abc import Callable, Mapping

import numpy as np

from tests.reference.assembled_numpy.case import Array, Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    k3,
    mean_of_row_means,
    token_mean,
)

Signals = Mapping[str, Array]
Loss = Callable[[Case, Signals], complex]
Mean = Callable[[Array, Array], complex]


def surrogate(batch: Case, pi: Signals, low: float = 0.2, high: float = 0.2) -> Array:
    """The loss of PPO for each action, with the ratio to the old policy (N, T)."""
    ratio = np.exp(pi["logp"] - batch.old_logp)
    return clipped_surrogate(ratio, batch.advantage, low, high)


def clipped_token_mean(low: float = 0.2, high: float = 0.2) -> Loss:
    """The mean over all actions of PPO's loss."""
    return lambda batch, pi: token_mean(surrogate(batch, pi, low, high), batch.mask)


def clipped_row_mean(low: float = 0.2, high: float = 0.2) -> Loss:
    """The mean over rows of each row's mean of PPO's loss."""
    return lambda batch, pi: mean_of_row_means(surrogate(batch, pi, low, high), batch.mask)


def with_kl(coef: float, mean: Mean) -> Loss:
    """PPO's loss and a KL divergence from the reference policy, by k3."""

    def loss(batch, pi):
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean(surrogate(batch, pi) + coef * kl, batch.mask)

    return loss
