"""The thing that is trained: it acts, and can say how likely its actions were."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from grupo.core.aux_heads import Helper
from grupo.core.batch import Batch, Signals
from grupo.core.interfaces import Act
from grupo.core.reference_update import Follow
from grupo.core.types import Rollout, Task
from grupo.models.aux_models import Company, Other
from grupo.models.weight_sync import Voice


class Policy(Protocol):
    """Packing, padding, devices and precision are its own affair; the mathematics sees (N, T)."""

    budget: int  # how much of a batch is worked on at once, in units of its own

    @property
    def seconds(self) -> float:
        """That it has spoken."""
        ...

    @property
    def helpers(self) -> nn.Module:
        """What is learned beside it."""
        ...

    @property
    def voice(self) -> Voice:
        """With which weights it acts."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """What is slower here than one might expect, a line each."""
        ...

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse tasks that it cannot be asked."""
        ...

    def act(self, key: int) -> Act:
        """How samplers use it: an `Act` whose random streams are derived from `key`."""
        ...

    def spell(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Each part of each of its actions as people read it, "" for what is no text."""
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

    def halve(self) -> str:
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

    def helped(self, helpers: Collection[Helper]) -> nn.Module:
        """Take on helpers, new ones, which are not among its parameters."""
        ...

    def accompanied(
        self, needs: Collection[str], follow: Follow, others: Sequence[Other]
    ) -> Company:
        """Everybody whom `needs` names, loaded; it is told whom it can be compared with."""
        ...

    def speak(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Act with weights that were taken from `voice`, of that version."""
        ...

    def speak_apart(self) -> None:
        """Have weights of its own to act with, so that it can learn meanwhile."""
        ...
