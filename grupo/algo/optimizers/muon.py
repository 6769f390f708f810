"""Muon: orthogonalized momentum for matrices, AdamW for all other parameters."""

from collections.abc import Collection, Sequence

import torch
from torch import nn

from grupo.algo.optimizers.adam import Adam
from grupo.algo.optimizers.combined import CombinedOptimizer
from grupo.algo.optimizers.decay import (
    DecaySelection,
    decay_groups,
    hidden_weights,
    split_parameters,
)
from grupo.core.component import component
from grupo.core.ranges import FractionBelowOne, NonNegativeFloat, PositiveInt
from grupo.util.errors import ConfigError


@component
class Muon:
    """Muon of torch for matrices of hidden layers, `adam` for embeddings, norms and biases.

    Jordan et al., 2024. The update of a matrix is scaled to the root mean square of AdamW's, as in
    Liu et al., 2025, arXiv:2502.16982, so that both take one learning rate.

    Args:
        momentum: decay of the sum of earlier gradients.
        nesterov: look ahead by one update of the momentum.
        newton_schulz_steps: iterations of the orthogonalization.
        weight_decay: decoupled decay of the matrices per update, relative to the learning rate.
        decayed: the matrices that decay.
        adam: the optimizer of all other parameters, with a weight decay of its own.
    """

    momentum: FractionBelowOne = 0.95
    nesterov: bool = True
    newton_schulz_steps: PositiveInt = 5
    weight_decay: NonNegativeFloat = 0.0
    decayed: DecaySelection = hidden_weights
    adam: Adam = Adam()

    def check(self) -> None:
        """Raise `ConfigError` for a torch without Muon."""
        if "Muon" not in vars(torch.optim):
            raise ConfigError(f"optimizer: Muon needs torch 2.9 or newer, not {torch.__version__}.")

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        return 4.0  # the momentum of the matrices

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> torch.optim.Optimizer:
        weights = [p for p in hidden_weights(parameters, embeddings) if p.ndim == 2]
        matrices, others = split_parameters(parameters, weights)
        optimizers: list[torch.optim.Optimizer] = []
        if matrices:
            optimizers.append(self._muon(matrices))
        if others:
            optimizers.append(self.adam(others, embeddings))
        return CombinedOptimizer(optimizers)

    def _muon(self, matrices: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Muon(
            decay_groups(matrices, (), self.weight_decay, self.decayed),
            momentum=self.momentum,
            nesterov=self.nesterov,
            ns_steps=self.newton_schulz_steps,
            adjust_lr_fn="match_rms_adamw",
        )
