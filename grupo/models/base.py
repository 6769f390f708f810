"""The thing that is trained: it acts, and can say how likely its actions were."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.interfaces import Actor
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Rollout, Task
from grupo.models.aux_models import AuxModel, AuxModels
from grupo.models.weight_sync import WeightSync


class Policy(Protocol):
    """Packing, padding, devices and precision are its own affair; the mathematics sees (N, T)."""

    tokens_per_microbatch: int  # how much of a batch is worked on at once, in units of its own

    @property
    def generation_seconds(self) -> float:
        """That it has spoken."""
        ...

    @property
    def aux_heads(self) -> nn.Module:
        """What is learned beside it."""
        ...

    @property
    def weight_sync(self) -> WeightSync:
        """With which weights it acts."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What is slower here than one might expect, a line each."""
        ...

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse tasks that it cannot be asked."""
        ...

    def actor(self, key: int) -> Actor:
        """How samplers use it: an `Actor` whose random streams are derived from `key`."""
        ...

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Each part of each of its actions as people read it, "" for what is no text."""
        ...

    def encode(self, rollouts: Sequence[Rollout]) -> Any:
        """What `signals` needs to evaluate these rollouts again, one row each: a batch's
        `inputs`."""
        ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every action by name, (N, T), 0 where masked; gradients flow through."""
        ...

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices, as many at a time as fit in memory; together every row once."""
        ...

    def halve_microbatch(self) -> str:
        """Work on half as much at once from now on, and say so; nothing if that is no help."""
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """What the optimizer updates, always in the same order."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """Everything that training changes, by name."""
        ...

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take over what `weights` returned."""
        ...

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write a folder that others load."""
        ...

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> nn.Module:
        """Take on helpers, new ones, which are not among its parameters."""
        ...

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Everybody whom `required_signals` names, loaded; it is told whom it can be compared with."""
        ...

    def sync_weights(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Act with weights that were taken from `weight_sync`, of that version."""
        ...

    def detach_sampler(self) -> None:
        """Have weights of its own to act with, so that it can learn meanwhile."""
        ...
