"""Auxiliary models of a run: the models whose signals a method reads, e.g. `logp@teacher`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from grupo.core.component import component
from grupo.core.interfaces import Scorer
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Observation, Rollout
from grupo.models.base import PolicySpec

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
            actions, or None to keep the task's prompt. Default: every prompt stays.
    """

    name: str
    model: PolicySpec | str = "policy"
    prompt_override: PromptOverride | None = None


@dataclass
class AuxModels:
    """Loaded auxiliary models.

    Args:
        scorers: models by name.
        reprompters: for each model with another prompt, the function that encodes its rows.
        reference_update: how the reference follows the policy.
        reference_weights: weights of the reference, by name, if it follows the policy.
    """

    scorers: Mapping[str, Scorer]
    reprompters: Mapping[str, Reprompter] = field(default_factory=dict)
    reference_update: ReferenceUpdate = ReferenceUpdate()
    reference_weights: dict[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def update_reference(self, step: int, policy: HasWeights) -> None:
        """Move the reference towards the policy if an update is due after this many steps."""
        if self.reference_weights and step % self.reference_update.every == 0:
            for name, weight in policy.weights().items():
                self.reference_weights[name].lerp_(weight, self.reference_update.rate)

    def encode_reprompted(self, policy: HasWeights, groups: Sequence[Group]) -> dict[str, object]:
        """Inputs of the groups' rollouts under every other prompt, for `Batch.inputs`."""
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
