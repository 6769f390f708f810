"""AdamW (Loshchilov and Hutter, 2017, arXiv:1711.05101)."""

from collections.abc import Collection, Sequence

import torch
from torch import nn

from grupo.algo.optimizers.decay import DecaySelection, decay_groups, hidden_weights
from grupo.core.component import component
from grupo.core.ranges import FractionBelowOne, NonNegativeFloat


@component
class Adam:
    """AdamW of torch; 8 bytes of state per parameter in float32.

    Args:
        beta1: decay of the first moment.
        beta2: decay of the second moment.
        eps: added to the root of the second moment.
        weight_decay: decoupled decay per update, relative to the learning rate.
        decayed: the parameters that decay; by default no norms, biases and embeddings.
    """

    beta1: FractionBelowOne = 0.9
    beta2: FractionBelowOne = 0.99
    eps: NonNegativeFloat = 1e-8
    weight_decay: NonNegativeFloat = 0.0
    decayed: DecaySelection = hidden_weights

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        return 8.0  # two moments in float32

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> torch.optim.Optimizer:
        groups = decay_groups(parameters, embeddings, self.weight_decay, self.decayed)
        return torch.optim.AdamW(groups, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)
