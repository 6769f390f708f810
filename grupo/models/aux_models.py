"""Loading of auxiliary models: the reference, teachers, and the policy under other conditions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import CURRENT, SAMPLER, split_name, temperature_of
from grupo.core.types import Group, Observation, Rollout
from grupo.models.base import AuxModel, AuxModels, PromptOverride, Reprompter
from grupo.models.signal_models import (
    AdapterDisabled,
    DistributionModel,
    Reprompted,
    S,
    S_co,
    TemperatureScaled,
    WeightsSwapped,
)
from grupo.util.sharded_tensors import whole


class SupportsAuxModels(Protocol[S_co]):
    """A policy that auxiliary models can be loaded for."""

    @property
    def has_adapters(self) -> bool: ...

    @property
    def continues_adapters(self) -> bool:
        """Whether adapters start from trained ones: the model without them is not the start."""
        ...

    @property
    def module(self) -> Any: ...

    def distributions(self, batch: Batch) -> S_co: ...

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...

    def weights(self) -> Mapping[str, Tensor]: ...

    def load_frozen_copy(self) -> Any:
        """A frozen policy with the weights from before training."""
        ...

    def replace_prompt(self, rollout: Rollout, observation: Observation) -> Rollout:
        """The rollout with `observation` in place of its prompt."""
        ...

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Raise `ConfigError` for a teacher with another space of actions."""
        ...


def load_aux_models(
    policy: SupportsAuxModels[S],
    required_signals: Collection[str],
    reference_update: ReferenceUpdate,
    aux_models: Sequence[AuxModel],
) -> tuple[AuxModels, Mapping[str, DistributionModel[S]]]:
    """Load every auxiliary model that `required_signals` names.

    Also return the models by name, with their full distributions, for the policy to compare with.
    """
    owners = {owner for _, owner in map(split_name, required_signals)}
    required = owners - {"", SAMPLER, CURRENT}
    requested = [aux_model for aux_model in aux_models if aux_model.name in required]
    reprompters = {
        aux_model.name: _make_reprompter(policy, aux_model.prompt_override)
        for aux_model in requested
        if aux_model.prompt_override
    }
    signal_models: dict[str, DistributionModel[S]] = {}
    shared: dict[str, DistributionModel[S]] = {"policy": policy}
    reference_weights: dict[str, Tensor] = {}
    if "ref" in required or any(aux_model.model == "ref" for aux_model in requested):
        shared["ref"], reference_weights = _load_reference(policy, reference_update)
        signal_models["ref"] = shared["ref"]
    for aux_model in requested:
        model = aux_model.model
        signal_model = shared[model] if isinstance(model, str) else _load_teacher(aux_model, policy)
        if aux_model.prompt_override:
            signal_model = Reprompted(signal_model, aux_model.name)
        signal_models[aux_model.name] = signal_model
    for name in sorted(required):
        if factor := temperature_of(name):
            signal_models[name] = TemperatureScaled(policy, factor)
    return AuxModels(signal_models, reprompters, reference_update, reference_weights), signal_models


def _load_teacher(aux_model: AuxModel, policy: SupportsAuxModels[S]) -> DistributionModel[S]:
    teacher: Any = aux_model.model.build() if not isinstance(aux_model.model, str) else None
    policy.check_teacher(aux_model.name, teacher)
    teacher.module.requires_grad_(False)
    return teacher


def _load_reference(
    policy: SupportsAuxModels[S], reference_update: ReferenceUpdate
) -> tuple[DistributionModel[S], dict[str, Tensor]]:
    """The reference policy, and its weights if they follow those of the policy."""
    if not policy.has_adapters:
        reference = policy.load_frozen_copy()
        weights = dict(reference.module.named_parameters()) if reference_update.rate else {}
        return reference, weights
    if not reference_update.rate and not policy.continues_adapters:
        return AdapterDisabled(policy), {}
    weights = {name: whole(weight).clone() for name, weight in policy.weights().items()}
    return WeightsSwapped(policy, weights), weights if reference_update.rate else {}


def _make_reprompter(policy: SupportsAuxModels[Any], prompt_override: PromptOverride) -> Reprompter:
    """Return a function that yields a rollout's rows under the prompt of `prompt_override`."""

    def reprompt(group: Group, rollout: Rollout) -> Sequence[Rollout]:
        prompt = prompt_override(group, rollout)
        if prompt is None or not rollout.turns:
            return rollout.contexts
        return policy.replace_prompt(rollout, prompt).contexts

    return reprompt
