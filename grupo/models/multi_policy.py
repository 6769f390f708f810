"""Several policies, loaded: one more policy to whoever trains them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.rng import derive_key
from grupo.core.types import Group, Rollout, Task
from grupo.inference.batcher import merge_batchers
from grupo.models.aux_models import AuxModel, AuxModels, Reprompter
from grupo.models.base import Policy
from grupo.models.multi_policy_inputs import (
    InputsByRole,
    WeightSyncByRole,
    inputs_of_role,
    prefix_with_role,
    rows_by_policy,
    select_role,
)
from grupo.models.role_actor import DEFAULT_ROLE, RoleActor
from grupo.models.weight_sync import Weights
from grupo.training.update import Scorer


class LoadedMultiPolicy:
    """`first`, which has every role but those of `others`, and these."""

    def __init__(self, main_policy: Policy, role_policies: Mapping[str, Policy]) -> None:
        self.by_role: Mapping[str, Policy] = {DEFAULT_ROLE: main_policy, **role_policies}
        self.roles, self.policies = list(self.by_role), list(self.by_role.values())
        self.tokens_per_microbatch = min(policy.tokens_per_microbatch for policy in self.policies)
        self.weight_sync = WeightSyncByRole(
            {role: policy.weight_sync for role, policy in self.by_role.items()}
        )
        self.aux_heads: nn.Module = self.attach_heads(())

    @property
    def tokens_per_microbatch(self) -> int:
        """How much is worked on at once, the same for all."""
        return self.policies[0].tokens_per_microbatch

    @tokens_per_microbatch.setter
    def tokens_per_microbatch(self, budget: int) -> None:
        for policy in self.policies:
            policy.tokens_per_microbatch = budget

    @property
    def generation_seconds(self) -> float:
        """That they have spoken; it is one at a time."""
        return sum(policy.generation_seconds for policy in self.policies)

    @property
    def warnings(self) -> Sequence[str]:
        """What is slower than one might expect with any of them."""
        return list(dict.fromkeys(chain.from_iterable(policy.warnings for policy in self.policies)))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse tasks that the first cannot be asked."""
        self.policies[0].validate_tasks(tasks)

    def actor(self, key: int) -> RoleActor:
        """How samplers use them: streams of the first are those that it has alone."""
        keys = {role: derive_key(key, "role", role) if role else key for role in self.roles}
        acts: list[Any] = [policy.actor(keys[role]) for role, policy in self.by_role.items()]
        queues = merge_batchers([act.queue for act in acts])
        asking = [replace(act, queue=queue) for act, queue in zip(acts, queues, strict=True)]
        return RoleActor(dict(zip(self.roles, asking, strict=True)))

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """The parts of its actions as whoever acted spells them."""
        return self.by_role[self._role_of(rollout)].tokens_as_text(rollout)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """Of every row whose it is and its place among theirs; what each needs for its own."""
        whose = [self._role_of(rollout) for rollout in rollouts]
        rows = defaultdict[str, list[Rollout]](list)
        for rollout, role in zip(rollouts, whose, strict=True):
            rows[role].append(rollout)
        each = {role: self.by_role[role].encode(some) for role, some in rows.items()}
        return {
            **rows_by_policy([self.roles.index(role) for role in whose]),
            "each": InputsByRole(each),
        }

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """What each says of its own rows."""
        return self.combine_signals(self.by_role, batch, names)

    def combine_signals(
        self, scorers: Mapping[str, Scorer], batch: Batch, names: Collection[str]
    ) -> Signals:
        """What each of these, by role, says of the rows of that role."""
        found = Signals()
        for role, rows, part in self._split_by_role(batch):
            for name, x in scorers[role].signals(part, names).items():
                x = x.to(batch.old_logp.device)
                blank = found.get(name, x.new_zeros(batch.mask.shape))
                found[name] = blank.index_copy(0, rows, x)
        return found

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices that fit in memory together, those of one policy at a time."""
        for role, rows, part in self._split_by_role(batch):
            for some in self.by_role[role].microbatches(part):
                yield rows[some]

    def halve_microbatch(self) -> str:
        """Let each work on half as much at once."""
        lines = [policy.halve_microbatch() for policy in self.policies]
        return next(filter(None, lines), "")

    def parameters(self) -> Sequence[nn.Parameter]:
        """All of theirs."""
        return [parameter for policy in self.policies for parameter in policy.parameters()]

    def weights(self) -> Weights:
        """All of theirs: of a role's policy as `role/name`."""
        return prefix_with_role({role: policy.weights() for role, policy in self.by_role.items()})

    def load(self, weights: Weights) -> None:
        """Take over what `weights` returned."""
        for role, policy in self.by_role.items():
            policy.load(select_role(role, weights))

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write the first into the folder, and each of the others into `folder/role`."""
        for role, policy in self.by_role.items():
            policy.export(folder / role, merge=merge)

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> nn.Module:
        """Let each take on helpers of its own."""
        self.aux_heads = nn.ModuleList(policy.attach_heads(aux_heads) for policy in self.policies)
        return self.aux_heads

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Everybody whom `required_signals` names, once for each policy."""
        each = {
            r: p.attach_aux_models(required_signals, reference_update, aux_models)
            for r, p in self.by_role.items()
        }
        speakers = {
            name: ScorerByRole(
                self, {role: company.scorers[name] for role, company in each.items()}
            )
            for name in each[DEFAULT_ROLE].scorers
        }
        views = {
            name: self._reprompt_by_role(name, each) for name in each[DEFAULT_ROLE].reprompters
        }
        following = prefix_with_role(
            {role: company.reference_weights for role, company in each.items()}
        )
        return AuxModels(speakers, views, reference_update, following)

    def sync_weights(self, weights: Weights, version: int) -> None:
        """Act with weights that were taken from `weight_sync`, of that version."""
        for role, policy in self.by_role.items():
            policy.sync_weights(select_role(role, weights), version)

    def detach_sampler(self) -> None:
        """Let each have weights of its own to act with."""
        for policy in self.policies:
            policy.detach_sampler()
        self.weight_sync = WeightSyncByRole(
            {role: policy.weight_sync for role, policy in self.by_role.items()}
        )

    def _role_of(self, rollout: Rollout) -> str:
        return rollout.role if rollout.role in self.by_role else DEFAULT_ROLE

    def _split_by_role(self, batch: Batch) -> Iterator[tuple[str, Tensor, Batch]]:
        """Roles that have rows, which, and these as a batch of their policy's."""
        for number, role in enumerate(self.roles):
            rows = (batch.inputs["whose"] == number).nonzero()[:, 0]
            if len(rows):
                part = batch.select_rows(rows)
                yield role, rows, replace(part, inputs=inputs_of_role(part.inputs, role))

    def _reprompt_by_role(self, name: str, aux_models: Mapping[str, AuxModels]) -> Reprompter:
        def read(group: Group, rollout: Rollout) -> Sequence[Rollout]:
            return aux_models[self._role_of(rollout)].reprompters[name](group, rollout)

        return read


@dataclass(frozen=True)
class ScorerByRole:
    """Somebody for each role: what they say of the rows of theirs."""

    policy: LoadedMultiPolicy
    scorers: Mapping[str, Scorer]

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """What each says of the rows of its role."""
        return self.policy.combine_signals(self.scorers, batch, names)
