"""The company a policy keeps: those whose signals its method reads, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from grupo.core.component import piece
from grupo.core.reference_update import Follow
from grupo.core.types import Group, Observation, Rollout
from grupo.models.spec import Spec
from grupo.training.update import Speaks

View = Callable[[Group, Rollout], Observation | None]  # what is read in place of the prompt
Reread = Callable[[Group, Rollout], Sequence[Rollout]]  # a rollout's rows, as somebody reads them


class Taught(Protocol):
    """A policy, as far as its company needs it."""

    def weights(self) -> Mapping[str, Tensor]: ...

    def encode(self, rollouts: Sequence[Rollout]) -> Any: ...


@piece
class Other:
    """Somebody whose signals a method may read: `logp@name`.

    `who` is a model of its own, or "policy" or "ref"; `view` says what is read before the same
    actions in place of the task's prompt, None: the prompt itself.
    """

    name: str
    who: Spec | str = "policy"
    view: View | None = None


@dataclass
class Company:
    """Speakers by name, and the reference where it follows the policy."""

    speakers: Mapping[str, Speaks]
    views: Mapping[str, Reread] = field(default_factory=dict)
    follow: Follow = Follow()
    following: dict[str, Tensor] = field(default_factory=dict)  # the reference's weights

    @torch.no_grad()
    def after(self, step: int, policy: Taught) -> None:
        """Let the reference follow, where it is time to, now that so many steps are done."""
        if self.following and step % self.follow.every == 0:
            for name, theirs in policy.weights().items():
                self.following[name].lerp_(theirs, self.follow.rate)

    def seen_otherwise(self, policy: Taught, groups: Sequence[Group]) -> dict[str, object]:
        """The inputs of every view of the groups' rollouts."""
        return {
            f"view/{name}": policy.encode(
                [row for g in groups for r in g.rollouts for row in view(g, r)]
            )
            for name, view in self.views.items()
        }

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Give the reference back the weights that were saved."""
        for name, x in self.following.items():
            x.copy_(weights[name])
