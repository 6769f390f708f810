"""A method: what a paper chooses, as data."""

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
    """Seven functions, one for each choice a paper makes; GRPO without KL unless told otherwise.

    `reference` says whether the reference policy, where one is read, follows the trained one.
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
        """The same method with some choices changed."""
        return replace(self, **changes)

    @property
    def required_signals(self) -> frozenset[str]:
        """Signals that some piece reads besides `logp`, however deep it lies."""
        return self.precomputed_signals | self.loss.required_signals

    @property
    def precomputed_signals(self) -> frozenset[str]:
        """Those to be measured before credit: of others, and whatever pieces but the loss read."""
        slots = (getattr(self, f.name) for f in fields(self) if f.name != "loss")
        declared = (getattr(part, "required_signals", ()) for slot in slots for part in walk(slot))
        return (self.loss.required_signals - self.loss.recomputed_signals).union(*declared)

    @property
    def controlled_metrics(self) -> frozenset[str]:
        """The metrics that controllers in it follow."""
        return frozenset(part.metric for part in self._components() if isinstance(part, Controller))

    @property
    def required_reward_history(self) -> frozenset[str]:
        """Components of the reward whose past some piece reads in `batch.past`."""
        return frozenset(
            x for part in self._components() for x in getattr(part, "required_reward_history", ())
        )

    @property
    def num_replays(self) -> int:
        """How many of a task's best and of its worst rollouts some piece reads in `task.before`."""
        return max((getattr(part, "num_replays", 0) for part in self._components()), default=0)

    @property
    def required_reward_terms(self) -> frozenset[str]:
        """Components of the reward that some piece reads."""
        return frozenset(
            x for part in self._components() for x in getattr(part, "required_reward_terms", ())
        )

    @property
    def required_columns(self) -> frozenset[str]:
        """Columns of the tasks that some piece reads."""
        return frozenset(
            x for part in self._components() for x in getattr(part, "required_columns", ())
        )

    @property
    def roles(self) -> frozenset[str]:
        """Roles of rollouts that some piece gives, which may be policies of their own."""
        return frozenset(x for part in self._components() for x in getattr(part, "roles", ()))

    @property
    def aux_heads(self) -> tuple[AuxHead, ...]:
        """What is learned beside the policy because some piece asks for it."""
        declared = (x for part in self._components() for x in getattr(part, "aux_heads", ()))
        return tuple(dict.fromkeys(declared))

    def _components(self) -> Iterator[object]:
        """Whatever lies in its slots, however deep."""
        return (part for slot in component_fields(self).values() for part in walk(slot))


def changed_slots(method: Method, base: Method = Method()) -> dict[str, str]:
    """The slots in which a method differs from `base`, as the code that fills them."""
    pairs = ((f.name, getattr(method, f.name)) for f in fields(method))
    return {name: to_code(value) for name, value in pairs if value != getattr(base, name)}
