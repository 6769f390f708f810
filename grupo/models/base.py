"""Interfaces of a policy: `PolicySpec` in a recipe, `Policy` once it is loaded."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.interfaces import Actor, SignalModel
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import CURRENT, SAMPLER
from grupo.core.types import Group, Observation, Rollout, Task
from grupo.core.validation import PromptLimit
from grupo.models.weight_sync import WeightSync
from grupo.util.sharded_tensors import whole

BUILTIN_MODELS = ("ref", SAMPLER, CURRENT)  # models that every policy can be compared with


@runtime_checkable
class PolicySpec(Protocol):
    """Configuration of a policy in a recipe: a component that is checked, then built."""

    @property
    def model(self) -> object:
        """Folder or hub name of the model's weights, or a loaded model; `str` names it."""
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


# the observation that replaces a rollout's prompt; None: the prompt stays
PromptOverride = Callable[[Group, Rollout], Observation | None]
# the rows of a rollout, one per context, with the prompt replaced
Reprompter = Callable[[Group, Rollout], Sequence[Rollout]]

REPROMPTED_PREFIX = "reprompted/"  # of keys in `Batch.inputs`, before an auxiliary model's name


class HasWeights(Protocol):
    """The part of a policy that updates of the reference need."""

    def weights(self) -> Mapping[str, Tensor]: ...

    def encode(self, rollouts: Sequence[Rollout]) -> Any: ...


@component
class AuxModel:
    """A model whose signals a method may read as `logp@name`.

    Args:
        name: name after the `@` of a signal.
        model: a model of its own, or "policy" or "ref".
        prompt_override: function of a group and a rollout that returns the prompt before the same
            responses, or None to keep the task's prompt. Default: every prompt stays.
    """

    name: str
    model: PolicySpec | str = "policy"
    prompt_override: PromptOverride | None = None


@dataclass
class AuxModels:
    """Loaded auxiliary models.

    Args:
        signal_models: models by name.
        reprompters: for each model with another prompt, the function that encodes its rows.
        reference_update: how the reference follows the policy.
        reference_weights: weights of the reference, by name, if it follows the policy.
    """

    signal_models: Mapping[str, SignalModel]
    reprompters: Mapping[str, Reprompter] = field(default_factory=dict)
    reference_update: ReferenceUpdate = ReferenceUpdate()
    reference_weights: dict[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def update_reference(self, step: int, policy: HasWeights) -> None:
        """Move the reference towards the policy if an update is due after this many steps."""
        if self.reference_weights and self.reference_update.is_due(step):
            for name, weight in policy.weights().items():
                self.reference_weights[name].lerp_(whole(weight), self.reference_update.rate)

    def encode_own_prompts(self, policy: HasWeights, groups: Sequence[Group]) -> dict[str, object]:
        """Encode the rollouts with the prompts of auxiliary models; return the inputs by name.

        They are a part of `Batch.inputs`. `PromptOverride` gives an auxiliary model its prompt.
        """
        inputs = dict[str, object]()
        for name, reprompt in self.reprompters.items():
            rows = [row for g in groups for r in g.rollouts for row in reprompt(g, r)]
            inputs[f"{REPROMPTED_PREFIX}{name}"] = policy.encode(rows)
        return inputs

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Copy saved weights into the reference."""
        for name, weight in self.reference_weights.items():
            weight.copy_(weights[name])


class Policy(Protocol):
    """A loaded model that generates responses, evaluates them with gradients, and is trained.

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
        """Lines for the user: why the policy is slower than expected, files that have changed."""
        ...

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose prompt the policy cannot take."""
        ...

    @property
    def prompt_limit(self) -> PromptLimit | None:
        """The largest prompt; None if there is no limit."""
        ...

    def actor(self, key: int) -> Actor:
        """Return a sampler's handle on the policy, with random streams derived from `key`."""
        ...

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Text of each token of each response; "" for items that are not text."""
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

    def release_memory(self) -> None:
        """Return memory to the device that is allocated but not used."""
        ...

    def halve_microbatch(self) -> str:
        """Halve the micro-batch; return a message, or "" if it cannot become smaller."""
        ...

    def parameters(self) -> Sequence[nn.Parameter]:
        """Parameters for the optimizer, always in the same order."""
        ...

    def embeddings(self) -> Sequence[nn.Parameter]:
        """Parameters that embed inputs or compute logits: most optimizers do not decay them."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """All trained weights by name."""
        ...

    @property
    def is_sharded(self) -> bool:
        """Whether ranks divide the weights, so that they need equal numbers of backward passes."""
        ...

    def replicated_weights(self) -> Mapping[str, Tensor]:
        """All trained weights by name, as every rank has them to generate with."""
        ...

    def update_unsharded_copy(self) -> None:
        """Bring the unsharded copy of sharded weights up to date after an update.

        A rank generates with the unsharded copy. Without sharded weights there is none, and nothing
        changes. Every rank calls this.
        """
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

    def use_weight_copy_for_generation(self) -> None:
        """From now on, generate from a copy of the weights, so that training can run meanwhile."""
        ...
