"""Several loaded policies behind the interface of one."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.interfaces import Actor, SignalModel
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.response_use import generation_only
from grupo.core.types import Group, Rollout, Task
from grupo.core.validation import PromptLimit
from grupo.models.base import AuxModel, AuxModels, Policy, Reprompter
from grupo.models.multi_policy_inputs import (
    InputsByRole,
    WeightSyncByRole,
    inputs_of_role,
    prefix_with_role,
    rows_by_policy,
    select_role,
)
from grupo.models.role_actor import DEFAULT_ROLE, RoleActor, role_key
from grupo.models.weight_sync import Weights
from grupo.util.errors import ConfigError


class LoadedMultiPolicy:
    """Policies that are trained together, each on the rollouts of its role, or frozen.

    Args:
        main_policy: acts in rollouts without a role of `role_policies`.
        role_policies: the other policies, by role.
        frozen_roles: roles whose policies are not trained; "" is the role of the main policy.
    """

    def __init__(
        self,
        main_policy: Policy,
        role_policies: Mapping[str, Policy],
        frozen_roles: Collection[str] = (),
    ) -> None:
        self.by_role: Mapping[str, Policy] = {DEFAULT_ROLE: main_policy, **role_policies}
        self.roles = list(self.by_role)
        self.trained_roles = [role for role in self.roles if role not in frozen_roles]
        for role in frozen_roles:
            for parameter in self.by_role[role].parameters():
                parameter.requires_grad_(False)
        self.policies = list(self.by_role.values())
        self.tokens_per_microbatch = min(policy.tokens_per_microbatch for policy in self.policies)
        self.weight_sync = self._make_weight_sync()
        self.aux_heads: nn.Module = self.attach_heads(())

    @property
    def tokens_per_microbatch(self) -> int:
        """Size of a micro-batch, equal for all policies."""
        return self.policies[0].tokens_per_microbatch

    @tokens_per_microbatch.setter
    def tokens_per_microbatch(self, num_tokens: int) -> None:
        for policy in self.policies:
            policy.tokens_per_microbatch = num_tokens

    @property
    def generation_seconds(self) -> float:
        """Seconds spent in generation, summed over the policies; they generate one at a time."""
        return sum(policy.generation_seconds for policy in self.policies)

    @property
    def warnings(self) -> Sequence[str]:
        """The lines of all policies for the user, each once."""
        return list(dict.fromkeys(chain.from_iterable(policy.warnings for policy in self.policies)))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose prompt the main policy cannot take."""
        self.policies[0].validate_tasks(tasks)

    @property
    def prompt_limit(self) -> PromptLimit | None:
        """The largest prompt of the main policy."""
        return self.policies[0].prompt_limit

    def actor(self, key: int) -> RoleActor:
        """Return a handle on all policies; the main policy's streams are those it has alone."""
        return RoleActor({role: self._actor_of(role, role_key(key, role)) for role in self.roles})

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Text of each item of each response, by the policy of the rollout's role."""
        return self.by_role[self._role_of(rollout)].tokens_as_text(rollout)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """The policy of every row, its index among that policy's rows, and all inputs by role."""
        roles = [self._trained_role_of(rollout) for rollout in rollouts]
        rows = defaultdict[str, list[Rollout]](list)
        for rollout, role in zip(rollouts, roles, strict=True):
            rows[role].append(rollout)
        by_role = {role: self.by_role[role].encode(own) for role, own in rows.items()}
        index = rows_by_policy([self.roles.index(role) for role in roles])
        return {**index, "by_role": InputsByRole(by_role)}

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every row, from the policy of its role."""
        return self.combine_signals(self.by_role, batch, names)

    def combine_signals(
        self, signal_models: Mapping[str, SignalModel], batch: Batch, names: Collection[str]
    ) -> Signals:
        """Signals of every row, from the model of its role."""
        combined = Signals()
        for role, rows, part in self._split_by_role(batch):
            for name, x in signal_models[role].signals(part, names).items():
                x = x.to(batch.old_logp.device)
                before = combined.get(name, x.new_zeros(batch.mask.shape))
                combined[name] = before.index_copy(0, rows, x)
        return combined

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches, each with rows of one policy."""
        for role, rows, part in self._split_by_role(batch):
            for part_rows in self.by_role[role].microbatches(part):
                yield rows[part_rows]

    def halve_microbatch(self) -> str:
        """Halve the micro-batches of all policies; return the first message."""
        messages = [policy.halve_microbatch() for policy in self.policies]
        return next(filter(None, messages), "")

    def release_memory(self) -> None:
        """Return unused memory of all policies to their devices."""
        for policy in self.policies:
            policy.release_memory()

    def parameters(self) -> Sequence[nn.Parameter]:
        """Parameters of all policies."""
        return [parameter for policy in self.policies for parameter in policy.parameters()]

    def embeddings(self) -> Sequence[nn.Parameter]:
        """Embeddings of all policies."""
        return [parameter for policy in self.policies for parameter in policy.embeddings()]

    def weights(self) -> Weights:
        """Trained weights of all policies, named `role/name`."""
        return prefix_with_role({role: policy.weights() for role, policy in self.by_role.items()})

    is_sharded = False  # a role's policy evaluates rows of its own, another number on each rank

    def replicated_weights(self) -> Weights:
        """Trained weights of all policies, as every rank has them."""
        return self.weights()

    def update_unsharded_copy(self) -> None:
        """No policy has sharded weights."""

    def load(self, weights: Weights) -> None:
        """Copy weights that `weights` returned into the models."""
        for role, policy in self.by_role.items():
            policy.load(select_role(role, weights))

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write every policy, frozen or not: the main one to a folder, others to `folder/role`."""
        for role, policy in self.by_role.items():
            policy.export(folder / role, merge=merge)

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> nn.Module:
        """Create auxiliary heads for each trained policy."""
        self.aux_heads = nn.ModuleList(
            policy.attach_heads(aux_heads if role in self.trained_roles else ())
            for role, policy in self.by_role.items()
        )
        return self.aux_heads

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Load every auxiliary model that `required_signals` names, once per trained policy."""
        by_role = {
            role: self.by_role[role].attach_aux_models(
                required_signals, reference_update, aux_models
            )
            for role in self.trained_roles
        }
        any_loaded = by_role[self.trained_roles[0]]  # the names are those of every policy
        signal_models = dict[str, SignalModel]()
        for name in any_loaded.signal_models:
            own = {role: loaded.signal_models[name] for role, loaded in by_role.items()}
            signal_models[name] = SignalModelByRole(self, own)
        reprompters = {
            name: self._reprompt_by_role(name, by_role) for name in any_loaded.reprompters
        }
        reference_weights = prefix_with_role(
            {role: loaded.reference_weights for role, loaded in by_role.items()}
        )
        return AuxModels(signal_models, reprompters, reference_update, reference_weights)

    def sync_weights(self, weights: Weights, version: int) -> None:
        """Generate from now on with a snapshot of `weight_sync` and label it with its version."""
        for role, policy in self.by_role.items():
            policy.sync_weights(select_role(role, weights), version)

    def use_weight_copy_for_generation(self) -> None:
        """From now on, generate from copies of the weights, so that training can run meanwhile.

        Frozen weights do not change, so that no copy of them is needed.
        """
        for role in self.trained_roles:
            self.by_role[role].use_weight_copy_for_generation()
        self.weight_sync = self._make_weight_sync()

    def _make_weight_sync(self) -> WeightSyncByRole:
        return WeightSyncByRole({role: p.weight_sync for role, p in self.by_role.items()})

    def _role_of(self, rollout: Rollout) -> str:
        return rollout.role if rollout.role in self.by_role else DEFAULT_ROLE

    def _trained_role_of(self, rollout: Rollout) -> str:
        """The role whose policy is trained on a rollout; raises `ConfigError` for a frozen one."""
        role = self._role_of(rollout)
        if role not in self.trained_roles:
            owner = f"policy of the role {role!r}" if role else "main policy"
            raise ConfigError(
                f"method.sampler: a group has a rollout of the {owner}, which is frozen. Allowed:"
                " rollouts of policies that are trained."
            )
        return role

    def _actor_of(self, role: str, key: int) -> Actor:
        with nullcontext() if role in self.trained_roles else generation_only():
            return self.by_role[role].actor(key)

    def _split_by_role(self, batch: Batch) -> Iterator[tuple[str, Tensor, Batch]]:
        """Each role that has rows, their indices, and a batch of them for its policy."""
        for number, role in enumerate(self.roles):
            rows = (batch.inputs["policy_index"] == number).nonzero()[:, 0]
            if len(rows):
                part = batch.select_rows(rows)
                yield role, rows, replace(part, inputs=inputs_of_role(part.inputs, role))

    def _reprompt_by_role(self, name: str, aux_models: Mapping[str, AuxModels]) -> Reprompter:
        def reprompt(group: Group, rollout: Rollout) -> Sequence[Rollout]:
            return aux_models[self._trained_role_of(rollout)].reprompters[name](group, rollout)

        return reprompt


@dataclass(frozen=True)
class SignalModelByRole:
    """Auxiliary models by role, each of which scores the rows of its role."""

    policy: LoadedMultiPolicy
    signal_models: Mapping[str, SignalModel]

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every row, from the model of its role."""
        return self.policy.combine_signals(self.signal_models, batch, names)
