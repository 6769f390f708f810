"""Stochastic gradient descent."""

from collections.abc import Collection, Sequence

import torch
from torch import nn

from grupo.algo.optimizers.decay import DecaySelection, decay_groups, hidden_weights
from grupo.core.component import check_field, component
from grupo.core.ranges import FractionBelowOne, NonNegativeFloat


@component
class SGD:
    """SGD of torch: no state without momentum, 4 bytes per parameter with it.

    Args:
        momentum: decay of the sum of earlier gradients.
        nesterov: look ahead by one update of the momentum.
        weight_decay: added to the gradient, relative to the weights.
        decayed: the parameters that decay; by default no norms, biases and embeddings.
    """

    momentum: FractionBelowOne = 0.0
    nesterov: bool = False
    weight_decay: NonNegativeFloat = 0.0
    decayed: DecaySelection = hidden_weights

    def __post_init__(self) -> None:
        allowed = "False without momentum"
        check_field(self, "nesterov", not self.nesterov or self.momentum > 0, allowed)

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        return 4.0 if self.momentum else 0.0

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> torch.optim.Optimizer:
        groups = decay_groups(parameters, embeddings, self.weight_decay, self.decayed)
        return torch.optim.SGD(groups, momentum=self.momentum, nesterov=self.nesterov)
