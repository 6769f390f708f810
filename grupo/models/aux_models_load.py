"""Who else can say how likely a policy's actions are: a reference, a teacher, itself."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.reference_update import Follow
from grupo.core.signal_names import split, tempered
from grupo.core.types import Group, Observation, Rollout
from grupo.models.aux_models import Company, Other, Reread, View
from grupo.models.scorers import S, S_co, Speaker, Tempered, Viewed, With, Without


class Accompanied(Protocol[S_co]):
    """A policy that others can be set beside."""

    @property
    def adapted(self) -> bool: ...

    @property
    def module(self) -> Any: ...

    def spoken(self, batch: Batch) -> S_co: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...

    def weights(self) -> Mapping[str, Tensor]: ...

    def copy(self) -> Any:
        """Another as training found this one, frozen."""
        ...

    def reread(self, rollout: Rollout, seen: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt."""
        ...

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Refuse somebody whose actions are others."""
        ...


def accompany(
    policy: Accompanied[S], needs: Collection[str], follow: Follow, others: Sequence[Other]
) -> tuple[Company, Mapping[str, Speaker[S]]]:
    """Everybody whom `needs` names, loaded, and whom the policy can be compared with."""
    asked = {who for _, who in map(split, needs) if who and who != "sampler"}
    wanted = [other for other in others if other.name in asked]
    views = {o.name: _reading(policy, o.view) for o in wanted if o.view}
    speakers: dict[str, Speaker[S]] = {}
    base: dict[str, Speaker[S]] = {"policy": policy}
    following: dict[str, Tensor] = {}
    if "ref" in asked or any(other.who == "ref" for other in wanted):
        base["ref"], following = _reference(policy, follow)
        speakers["ref"] = base["ref"]
    for other in wanted:
        speaker = base[other.who] if isinstance(other.who, str) else _teacher(other, policy)
        speakers[other.name] = Viewed(speaker, other.name) if other.view else speaker
    for who in sorted(asked):
        if factor := tempered(who):
            speakers[who] = Tempered(policy, factor)
    return Company(speakers, views, follow, following), speakers


def _teacher(other: Other, policy: Accompanied[S]) -> Speaker[S]:
    teacher: Any = other.who.build() if not isinstance(other.who, str) else None
    policy.check_teacher(other.name, teacher)
    teacher.module.requires_grad_(False)
    return teacher


def _reference(policy: Accompanied[S], follow: Follow) -> tuple[Speaker[S], dict[str, Tensor]]:
    """The reference, and its weights if they follow the policy's."""
    if not policy.adapted:
        copy = policy.copy()
        return copy, dict(copy.module.named_parameters()) if follow.rate else {}
    if not follow.rate:
        return Without(policy), {}
    following = {name: x.clone() for name, x in policy.weights().items()}
    return With(policy, following), following


def _reading(policy: Accompanied[Any], view: View) -> Reread:
    """The rows of a rollout as if what `view` says had been its prompt."""

    def read(group: Group, rollout: Rollout) -> Sequence[Rollout]:
        seen = view(group, rollout)
        if seen is None or not rollout.turns:
            return rollout.rows
        return policy.reread(rollout, seen).rows

    return read
