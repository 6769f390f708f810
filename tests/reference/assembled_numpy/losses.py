"""Losses that many papers share, for each action or averaged over a minibatch."""

from collections.abc import Callable

import numpy as np

from tests.reference.assembled_numpy.case import Array, Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    k3,
    mean_of_row_means,
)
from tests.reference.assembled_numpy.update import Loss, Signals

Mean = Callable[[Array, Array], complex]


def surrogate(batch: Case, pi: Signals, low: float = 0.2, high: float = 0.2) -> Array:
    """The loss of PPO for each action, with the ratio to the old policy (N, T)."""
    ratio = np.exp(pi["logp"] - batch.old_logp)
    return clipped_surrogate(ratio, batch.advantage, low, high)


def ppo_loss(
    mean: Mean = mean_of_row_means,
    low: float = 0.2,
    high: float = 0.2,
    kl_coef: float = 0.0,
) -> Loss:
    """The mean of PPO's loss, with k3 to the reference policy: GRPO's loss by default."""

    def loss(batch, pi):
        per_action = surrogate(batch, pi, low, high)
        if kl_coef:
            per_action = per_action + kl_coef * k3(pi["logp"], batch.signals["logp@ref"])
        return mean(per_action, batch.mask)

    return loss
