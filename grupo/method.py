"""A method as data: one component for each choice that a paper makes."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from grupo.algo.advantages import AdvantageEstimator, Center, ScaleByStd, chain
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.filters import Filter, keep_all
from grupo.algo.losses import Clip, Loss
from grupo.algo.minibatches import SingleUpdate, UpdatePlan
from grupo.core.aux_heads import AuxHead
from grupo.core.component import component, component_fields, to_code, walk
from grupo.core.controllers import Controller
from grupo.core.reference_update import ReferenceUpdate
from grupo.rollouts.curricula import Curriculum, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler, Sampler


@component
class Method:
    """A training method with eight slots; the defaults are GRPO without a KL penalty.

    Args:
        curriculum: Chooses the tasks of a step.
        sampler: Generates the group of rollouts of a task.
        filter: Selects the groups that are trained on.
        advantage: Computes advantages from rewards.
        loss: Loss per action, a function of signals such as `logp`.
        aggregation: Weight of each action in the sum of losses, such as a token mean.
        updates: Epochs and minibatches of a step.
        reference: Whether and how the reference policy follows the trained one.

    >>> Method().replace(sampler=GroupSampler(16)).sampler
    GroupSampler(group_size=16)
    """

    curriculum: Curriculum = ShuffledTasks()
    sampler: Sampler = GroupSampler(8)
    filter: Filter = keep_all
    advantage: AdvantageEstimator = chain(Center(), ScaleByStd())
    loss: Loss = Clip()
    aggregation: Aggregation = sequence_mean
    updates: UpdatePlan = SingleUpdate()
    reference: ReferenceUpdate = ReferenceUpdate()

    def replace(self, **changes: Any) -> "Method":
        """The same method with some slots changed."""
        return replace(self, **changes)

    @property
    def required_signals(self) -> frozenset[str]:
        """Signals besides `logp` that a component of the method reads, at any depth."""
        return self.precomputed_signals | self.loss.required_signals

    @property
    def precomputed_signals(self) -> frozenset[str]:
        """Required signals that are computed once per step, before the advantages.

        The other signals are those which the loss recomputes in every update.
        """
        slots = (getattr(self, f.name) for f in fields(self) if f.name != "loss")
        declared = (getattr(part, "required_signals", ()) for slot in slots for part in walk(slot))
        return (self.loss.required_signals - self.loss.recomputed_signals).union(*declared)

    @property
    def controlled_metrics(self) -> frozenset[str]:
        """Metrics that the method's controllers read."""
        return frozenset(part.metric for part in self._components() if isinstance(part, Controller))

    @property
    def required_reward_history(self) -> frozenset[str]:
        """Reward terms whose earlier values a component reads in `batch.history`."""
        return frozenset(self._declared("required_reward_history"))

    @property
    def num_replays(self) -> int:
        """Number of best and of worst earlier rollouts that a component reads in `task.replays`."""
        return max((getattr(part, "num_replays", 0) for part in self._components()), default=0)

    @property
    def required_reward_terms(self) -> frozenset[str]:
        """Reward terms that a component reads."""
        return frozenset(self._declared("required_reward_terms"))

    @property
    def required_columns(self) -> frozenset[str]:
        """Columns of the tasks that a component reads."""
        return frozenset(self._declared("required_columns"))

    @property
    def roles(self) -> frozenset[str]:
        """Roles that a component gives to rollouts; each role may be a policy of its own."""
        return frozenset(self._declared("roles"))

    @property
    def aux_heads(self) -> tuple[AuxHead, ...]:
        """Auxiliary heads that a component requires, each once, in order of appearance."""
        return tuple(dict.fromkeys(self._declared("aux_heads")))

    def _declared(self, attribute: str) -> Iterator[Any]:
        """The entries of a declaration such as `required_columns`, over all components."""
        return (entry for part in self._components() for entry in getattr(part, attribute, ()))

    def _components(self) -> Iterator[object]:
        """The components in the slots, at any depth."""
        return (part for slot in component_fields(self).values() for part in walk(slot))


def changed_slots(method: Method, base: Method = Method()) -> dict[str, str]:
    """The slots in which `method` differs from `base`, as the code that fills them.

    >>> changed_slots(Method(advantage=Center()))
    {'advantage': 'Center()'}
    """
    slots = ((f.name, getattr(method, f.name)) for f in fields(method))
    return {name: to_code(value) for name, value in slots if value != getattr(base, name)}
