"""AdamW with a state of 8 bits (Dettmers et al., 2021, arXiv:2110.02861)."""

from collections.abc import Collection, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from grupo.algo.optimizers.decay import DecaySelection, decay_groups, hidden_weights
from grupo.core.component import component
from grupo.core.ranges import FractionBelowOne, NonNegativeFloat
from grupo.util.optional_deps import optional_dependency


@component
class Adam8bit:
    """AdamW of bitsandbytes: 2 bytes of state per parameter instead of the 8 of `Adam`.

    Parameters of fewer than 4,096 numbers keep a state of 32 bits.

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

    def check(self) -> None:
        """Raise `ConfigError` if the library is not installed."""
        _import_optimizers()

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        return 2.0  # two moments in 8 bits

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> Optimizer:
        groups = decay_groups(parameters, embeddings, self.weight_decay, self.decayed)
        return _import_optimizers().AdamW8bit(groups, betas=(self.beta1, self.beta2), eps=self.eps)


def _import_optimizers() -> Any:
    with optional_dependency("bitsandbytes", "quantization"):
        from bitsandbytes import optim
    return optim
