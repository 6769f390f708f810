"""The thing that is trained: it acts, and can say how likely its actions were."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from grupo.batch import Batch, Signals
from grupo.rollout import Act, Rollout


class Policy(Protocol):
    """Packing, padding, devices and precision are its own affair; the mathematics sees (N, T)."""

    def act(self, key: int) -> Act:
        """How samplers use it: an `Act` whose random streams are derived from `key`."""
        ...

    def encode(self, rollouts: Sequence[Rollout]) -> Any:
        """What `signals` needs to evaluate these rollouts again, one row each: a batch's
        `inputs`."""
        ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every action by name, (N, T), 0 where masked; gradients flow through."""
        ...

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices, as many at a time as fit in memory; together every row once."""
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """What the optimizer updates, always in the same order."""
        ...
