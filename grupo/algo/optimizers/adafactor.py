"""Adafactor (Shazeer and Stern, 2018, arXiv:1804.04235)."""

from collections.abc import Collection, Sequence

import torch
from torch import nn

from grupo.algo.optimizers.decay import DecaySelection, decay_groups, hidden_weights
from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat, PositiveFloat


@component
class Adafactor:
    """Adafactor of torch: the second moment of a matrix as one number per row and column.

    An update is relative to the root mean square of the weights: learning rates are larger than
    Adam's, 1e-2 to 1e-4 for all weights.

    Args:
        beta2_exponent: the second moment decays by 1 - updates ** -beta2_exponent.
        eps: smallest root mean square of the weights that scales an update.
        clip_update: largest root mean square of an update before the learning rate.
        weight_decay: decoupled decay per update, relative to the learning rate.
        decayed: the parameters that decay; by default no norms, biases and embeddings.
    """

    beta2_exponent: PositiveFloat = 0.8
    eps: NonNegativeFloat = 1e-3
    clip_update: PositiveFloat = 1.0
    weight_decay: NonNegativeFloat = 0.0
    decayed: DecaySelection = hidden_weights

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        return 0.0  # one number per row and column

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> torch.optim.Optimizer:
        groups = decay_groups(parameters, embeddings, self.weight_decay, self.decayed)
        return torch.optim.Adafactor(
            groups, beta2_decay=-self.beta2_exponent, eps=(None, self.eps), d=self.clip_update
        )
