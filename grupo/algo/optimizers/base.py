"""The interface of optimizers in recipes."""

from collections.abc import Collection, Sequence
from typing import Protocol

from torch import nn
from torch.optim import Optimizer


class OptimizerSpec(Protocol):
    """An optimizer in a recipe: makes an optimizer of torch; the trainer sets the learning rate."""

    @property
    def state_bytes(self) -> float:
        """Bytes of state per trained parameter, about."""
        ...

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> Optimizer:
        """The optimizer.

        Args:
            parameters: Parameters to train.
            embeddings: Those among them that embed tokens or compute logits.
        """
        ...
