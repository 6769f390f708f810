"""Interfaces of a policy: `PolicySpec` in a recipe, `Policy` once it is loaded."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.interfaces import Actor
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Rollout, Task

if TYPE_CHECKING:  # these modules import `PolicySpec`
    from grupo.models.aux_models import AuxModel, AuxModels
    from grupo.models.weight_sync import WeightSync

BUILTIN_MODELS = ("ref", "sampler")  # models that every policy can be compared with


@runtime_checkable
class PolicySpec(Protocol):
    """Configuration of a policy in a recipe: a component that is checked, then built."""

    @property
    def model(self) -> str:
        """Folder or hub name of the model's weights."""
        ...

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals of its policy, e.g. `entropy`; `reverse_kl` compares two models."""
        ...

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration, for names as `logp@ref`: `ref`, `sampler`."""
        ...

    def check(self) -> None:
        """Raise `ConfigError` for values that cannot work, before anything is loaded."""
        ...

    def build(self) -> "Policy":
        """Load the model."""
        ...


class Policy(Protocol):
    """A loaded model that generates actions, evaluates them with gradients, and is trained.

    Packing, padding, devices and precision are internal: callers see rows and actions, (N, T).
    """

    tokens_per_microbatch: int  # size of a micro-batch, in tokens (denoising steps, for a flow)

    @property
    def generation_seconds(self) -> float:
        """Seconds spent in generation since the policy was built."""
        ...

    @property
    def aux_heads(self) -> nn.Module:
        """Auxiliary heads that are trained beside the policy."""
        ...

    @property
    def weight_sync(self) -> "WeightSync":
        """Connection to the weights that generation uses."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Reasons why this policy is slower than expected on this machine, one line each."""
        ...

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose prompt the policy cannot take."""
        ...

    def actor(self, key: int) -> Actor:
        """Return a sampler's handle on the policy, with random streams derived from `key`."""
        ...

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Text of each token of each action; "" for items that are not text."""
        ...

    def encode(self, rollouts: Sequence[Rollout]) -> Any:
        """Tensors from which `signals` evaluates these rollouts, a row each: `Batch.inputs`."""
        ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every action by name, (N, T), 0 where masked; gradients flow through."""
        ...

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches that fit in memory; every row occurs once."""
        ...

    def halve_microbatch(self) -> str:
        """Halve the micro-batch; return a message, or "" if it cannot become smaller."""
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """Parameters for the optimizer, always in the same order."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """All trained weights by name."""
        ...

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights that `weights` returned into the model."""
        ...

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write the model to a folder, with adapters merged or separate."""
        ...

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> nn.Module:
        """Create auxiliary heads; they do not belong to `parameters`."""
        ...

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: "Sequence[AuxModel]",
    ) -> "AuxModels":
        """Load every auxiliary model that `required_signals` names, e.g. `logp@ref`."""
        ...

    def sync_weights(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Generate from now on with a snapshot of `weight_sync` and label it with its version."""
        ...

    def detach_sampler(self) -> None:
        """Generate from a copy of the weights, so that training can run at the same time."""
        ...
