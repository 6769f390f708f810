"""Schedule-free AdamW (Defazio et al., 2024, arXiv:2405.15682)."""

from collections.abc import Collection, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from grupo.algo.optimizers.decay import DecaySelection, decay_groups, hidden_weights
from grupo.core.component import component
from grupo.core.ranges import FractionBelowOne, NonNegativeFloat, NonNegativeInt, OpenProbability
from grupo.util.optional_deps import optional_dependency


@component
class ScheduleFreeAdam:
    """AdamW of the library `schedulefree`, which averages weights instead of a schedule.

    Rollouts are generated with the weights at which gradients are computed; evaluations,
    checkpoints and exported models have the averaged weights (`grupo.algo.optimizers.averaging`).
    The learning rate is a number, not a schedule that ends at 0.

    Args:
        beta1: interpolation between the weights of the last update and their average.
        beta2: decay of the second moment.
        eps: added to the root of the second moment.
        warmup_updates: number of first updates over which the learning rate rises linearly.
        weight_decay: decoupled decay per update, relative to the learning rate.
        decayed: the parameters that decay; by default no norms, biases and embeddings.
    """

    beta1: OpenProbability = 0.9
    beta2: FractionBelowOne = 0.999
    eps: NonNegativeFloat = 1e-8
    warmup_updates: NonNegativeInt = 0
    weight_decay: NonNegativeFloat = 0.0
    decayed: DecaySelection = hidden_weights

    def check(self) -> None:
        """Raise `ConfigError` if the library is not installed."""
        _import_schedulefree()

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        return 8.0  # a second set of weights and the second moment

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> Optimizer:
        optimizer: Any = _import_schedulefree().AdamWScheduleFree(
            decay_groups(parameters, embeddings, self.weight_decay, self.decayed),
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            warmup_steps=self.warmup_updates,
        )
        optimizer.train()
        return optimizer


def _import_schedulefree() -> Any:
    with optional_dependency("schedulefree", "optimizers"):
        import schedulefree
    return schedulefree
