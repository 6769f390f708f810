"""A policy whose signals are free numbers, each with a gradient of its own."""

from collections.abc import Collection, Iterator, Mapping

import torch
from torch import Tensor, nn

from grupo.core.batch import Batch, Signals


class FreePolicy:
    """One parameter for each signal and action; `batch.inputs` are the rows of a batch.

    Args:
        signals: Values of the signals (N, T), by name.
    """

    is_sharded = False

    def __init__(self, signals: Mapping[str, Tensor]) -> None:
        self.signal_values = {name: nn.Parameter(x.clone()) for name, x in signals.items()}

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """The named signals of the batch's rows; the entropy is 1 where no value was given."""
        ones = torch.ones_like(batch.old_logp)
        values = self.signal_values
        return Signals(
            {name: values[name][batch.inputs] if name in values else ones for name in names}
        )

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """All rows at once."""
        yield torch.arange(len(batch.mask))

    def parameters(self) -> list[nn.Parameter]:
        """The signals."""
        return [*self.signal_values.values()]
