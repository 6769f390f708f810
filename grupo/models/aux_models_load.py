"""Who else can say how likely a policy's actions are: a reference, a teacher, itself."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import split_name, temperature_of
from grupo.core.types import Group, Observation, Rollout
from grupo.models.aux_models import AuxModel, AuxModels, PromptOverride, Reprompter
from grupo.models.scorers import (
    AdapterDisabled,
    DistributionScorer,
    Reprompted,
    S,
    S_co,
    TemperatureScaled,
    WeightsSwapped,
)


class SupportsAuxModels(Protocol[S_co]):
    """A policy that others can be set beside."""

    @property
    def has_adapters(self) -> bool: ...

    @property
    def module(self) -> Any: ...

    def distributions(self, batch: Batch) -> S_co: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...

    def weights(self) -> Mapping[str, Tensor]: ...

    def load_frozen_copy(self) -> Any:
        """Another as training found this one, frozen."""
        ...

    def replace_prompt(self, rollout: Rollout, observation: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt."""
        ...

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Refuse somebody whose actions are others."""
        ...


def load_aux_models(
    policy: SupportsAuxModels[S],
    required_signals: Collection[str],
    reference_update: ReferenceUpdate,
    aux_models: Sequence[AuxModel],
) -> tuple[AuxModels, Mapping[str, DistributionScorer[S]]]:
    """Everybody whom `required_signals` names, loaded, and whom the policy can be compared with."""
    asked = {who for _, who in map(split_name, required_signals) if who and who != "sampler"}
    wanted = [other for other in aux_models if other.name in asked]
    views = {
        o.name: _make_reprompter(policy, o.prompt_override) for o in wanted if o.prompt_override
    }
    speakers: dict[str, DistributionScorer[S]] = {}
    base: dict[str, DistributionScorer[S]] = {"policy": policy}
    following: dict[str, Tensor] = {}
    if "ref" in asked or any(other.model == "ref" for other in wanted):
        base["ref"], following = _load_reference(policy, reference_update)
        speakers["ref"] = base["ref"]
    for other in wanted:
        speaker = (
            base[other.model] if isinstance(other.model, str) else _load_teacher(other, policy)
        )
        speakers[other.name] = Reprompted(speaker, other.name) if other.prompt_override else speaker
    for who in sorted(asked):
        if factor := temperature_of(who):
            speakers[who] = TemperatureScaled(policy, factor)
    return AuxModels(speakers, views, reference_update, following), speakers


def _load_teacher(aux_model: AuxModel, policy: SupportsAuxModels[S]) -> DistributionScorer[S]:
    teacher: Any = aux_model.model.build() if not isinstance(aux_model.model, str) else None
    policy.check_teacher(aux_model.name, teacher)
    teacher.module.requires_grad_(False)
    return teacher


def _load_reference(
    policy: SupportsAuxModels[S], reference_update: ReferenceUpdate
) -> tuple[DistributionScorer[S], dict[str, Tensor]]:
    """The reference, and its weights if they follow the policy's."""
    if not policy.has_adapters:
        copy = policy.load_frozen_copy()
        return copy, dict(copy.module.named_parameters()) if reference_update.rate else {}
    if not reference_update.rate:
        return AdapterDisabled(policy), {}
    following = {name: x.clone() for name, x in policy.weights().items()}
    return WeightsSwapped(policy, following), following


def _make_reprompter(policy: SupportsAuxModels[Any], prompt_override: PromptOverride) -> Reprompter:
    """The rows of a rollout as if what `view` says had been its prompt."""

    def read(group: Group, rollout: Rollout) -> Sequence[Rollout]:
        seen = prompt_override(group, rollout)
        if seen is None or not rollout.turns:
            return rollout.contexts
        return policy.replace_prompt(rollout, seen).contexts

    return read
