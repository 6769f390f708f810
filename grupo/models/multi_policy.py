"""Several policies, loaded: one more policy to whoever trains them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from grupo.core.aux_heads import Helper
from grupo.core.batch import Batch, Signals
from grupo.core.reference_update import Follow
from grupo.core.rng import derive
from grupo.core.types import Group, Rollout, Task
from grupo.inference.batcher import joined
from grupo.models.aux_models import Company, Other, Reread
from grupo.models.base import Policy
from grupo.models.multi_policy_inputs import Encoded, Voices, named, of, own, placed
from grupo.models.role_actor import NONE, RoleAct
from grupo.models.weight_sync import Weights
from grupo.training.update import Speaks


class SeveralPolicy:
    """`first`, which has every role but those of `others`, and these."""

    def __init__(self, first: Policy, others: Mapping[str, Policy]) -> None:
        self.by_role: Mapping[str, Policy] = {NONE: first, **others}
        self.roles, self.all = list(self.by_role), list(self.by_role.values())
        self.budget = min(policy.budget for policy in self.all)
        self.voice = Voices({role: policy.voice for role, policy in self.by_role.items()})
        self.helpers: nn.Module = self.helped(())

    @property
    def budget(self) -> int:
        """How much is worked on at once, the same for all."""
        return self.all[0].budget

    @budget.setter
    def budget(self, budget: int) -> None:
        for policy in self.all:
            policy.budget = budget

    @property
    def seconds(self) -> float:
        """That they have spoken; it is one at a time."""
        return sum(policy.seconds for policy in self.all)

    @property
    def remarks(self) -> Sequence[str]:
        """What is slower than one might expect with any of them."""
        return list(dict.fromkeys(chain.from_iterable(policy.remarks for policy in self.all)))

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse tasks that the first cannot be asked."""
        self.all[0].admit(tasks)

    def act(self, key: int) -> RoleAct:
        """How samplers use them: streams of the first are those that it has alone."""
        keys = {role: derive(key, "role", role) if role else key for role in self.roles}
        acts: list[Any] = [policy.act(keys[role]) for role, policy in self.by_role.items()]
        queues = joined([act.queue for act in acts])
        asking = [replace(act, queue=queue) for act, queue in zip(acts, queues, strict=True)]
        return RoleAct(dict(zip(self.roles, asking, strict=True)))

    def spell(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """The parts of its actions as whoever acted spells them."""
        return self.by_role[self._role(rollout)].spell(rollout)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """Of every row whose it is and its place among theirs; what each needs for its own."""
        whose = [self._role(rollout) for rollout in rollouts]
        rows = defaultdict[str, list[Rollout]](list)
        for rollout, role in zip(rollouts, whose, strict=True):
            rows[role].append(rollout)
        each = {role: self.by_role[role].encode(some) for role, some in rows.items()}
        return {**placed([self.roles.index(role) for role in whose]), "each": Encoded(each)}

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """What each says of its own rows."""
        return self.said(self.by_role, batch, names)

    def said(self, speakers: Mapping[str, Speaks], batch: Batch, names: Collection[str]) -> Signals:
        """What each of these, by role, says of the rows of that role."""
        found = Signals()
        for role, rows, part in self._parts(batch):
            for name, x in speakers[role].signals(part, names).items():
                x = x.to(batch.old_logp.device)
                blank = found.get(name, x.new_zeros(batch.mask.shape))
                found[name] = blank.index_copy(0, rows, x)
        return found

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices that fit in memory together, those of one policy at a time."""
        for role, rows, part in self._parts(batch):
            for some in self.by_role[role].micro(part):
                yield rows[some]

    def halve(self) -> str:
        """Let each work on half as much at once."""
        lines = [policy.halve() for policy in self.all]
        return next(filter(None, lines), "")

    def parameters(self) -> Sequence[nn.Parameter]:
        """All of theirs."""
        return [parameter for policy in self.all for parameter in policy.parameters()]

    def weights(self) -> Weights:
        """All of theirs: of a role's policy as `role/name`."""
        return named({role: policy.weights() for role, policy in self.by_role.items()})

    def load(self, weights: Weights) -> None:
        """Take over what `weights` returned."""
        for role, policy in self.by_role.items():
            policy.load(of(role, weights))

    def export(self, folder: Path, *, merge: bool = True) -> None:
        """Write the first into the folder, and each of the others into `folder/role`."""
        for role, policy in self.by_role.items():
            policy.export(folder / role, merge=merge)

    def helped(self, helpers: Collection[Helper]) -> nn.Module:
        """Let each take on helpers of its own."""
        self.helpers = nn.ModuleList(policy.helped(helpers) for policy in self.all)
        return self.helpers

    def accompanied(
        self, needs: Collection[str], follow: Follow, others: Sequence[Other]
    ) -> Company:
        """Everybody whom `needs` names, once for each policy."""
        each = {r: p.accompanied(needs, follow, others) for r, p in self.by_role.items()}
        speakers = {
            name: Cast(self, {role: company.speakers[name] for role, company in each.items()})
            for name in each[NONE].speakers
        }
        views = {name: self._reread(name, each) for name in each[NONE].views}
        following = named({role: company.following for role, company in each.items()})
        return Company(speakers, views, follow, following)

    def speak(self, weights: Weights, version: int) -> None:
        """Act with weights that were taken from `voice`, of that version."""
        for role, policy in self.by_role.items():
            policy.speak(of(role, weights), version)

    def speak_apart(self) -> None:
        """Let each have weights of its own to act with."""
        for policy in self.all:
            policy.speak_apart()
        self.voice = Voices({role: policy.voice for role, policy in self.by_role.items()})

    def _role(self, rollout: Rollout) -> str:
        return rollout.role if rollout.role in self.by_role else NONE

    def _parts(self, batch: Batch) -> Iterator[tuple[str, Tensor, Batch]]:
        """Roles that have rows, which, and these as a batch of their policy's."""
        for number, role in enumerate(self.roles):
            rows = (batch.inputs["whose"] == number).nonzero()[:, 0]
            if len(rows):
                part = batch.take(rows)
                yield role, rows, replace(part, inputs=own(part.inputs, role))

    def _reread(self, name: str, each: Mapping[str, Company]) -> Reread:
        def read(group: Group, rollout: Rollout) -> Sequence[Rollout]:
            return each[self._role(rollout)].views[name](group, rollout)

        return read


@dataclass(frozen=True)
class Cast:
    """Somebody for each role: what they say of the rows of theirs."""

    policy: SeveralPolicy
    speakers: Mapping[str, Speaks]

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """What each says of the rows of its role."""
        return self.policy.said(self.speakers, batch, names)
