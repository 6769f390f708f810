"""The company a policy keeps: those whose signals its method reads, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from grupo.core.component import component
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Observation, Rollout
from grupo.models.spec import PolicySpec
from grupo.training.update import Scorer

PromptOverride = Callable[
    [Group, Rollout], Observation | None
]  # what is read in place of the prompt
Reprompter = Callable[
    [Group, Rollout], Sequence[Rollout]
]  # a rollout's rows, as somebody reads them


class HasWeights(Protocol):
    """A policy, as far as its company needs it."""

    def weights(self) -> Mapping[str, Tensor]: ...

    def encode(self, rollouts: Sequence[Rollout]) -> Any: ...


@component
class AuxModel:
    """Somebody whose signals a method may read: `logp@name`.

    `who` is a model of its own, or "policy" or "ref"; `view` says what is read before the same
    actions in place of the task's prompt, None: the prompt itself.
    """

    name: str
    model: PolicySpec | str = "policy"
    prompt_override: PromptOverride | None = None


@dataclass
class AuxModels:
    """Speakers by name, and the reference where it follows the policy."""

    scorers: Mapping[str, Scorer]
    reprompters: Mapping[str, Reprompter] = field(default_factory=dict)
    reference_update: ReferenceUpdate = ReferenceUpdate()
    reference_weights: dict[str, Tensor] = field(default_factory=dict)  # the reference's weights

    @torch.no_grad()
    def update_reference(self, step: int, policy: HasWeights) -> None:
        """Let the reference follow, where it is time to, now that so many steps are done."""
        if self.reference_weights and step % self.reference_update.every == 0:
            for name, theirs in policy.weights().items():
                self.reference_weights[name].lerp_(theirs, self.reference_update.rate)

    def encode_reprompted(self, policy: HasWeights, groups: Sequence[Group]) -> dict[str, object]:
        """The inputs of every view of the groups' rollouts."""
        return {
            f"view/{name}": policy.encode(
                [row for g in groups for r in g.rollouts for row in view(g, r)]
            )
            for name, view in self.reprompters.items()
        }

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Give the reference back the weights that were saved."""
        for name, x in self.reference_weights.items():
            x.copy_(weights[name])
