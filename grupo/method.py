"""A method as data: one component for each choice that a paper makes."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from grupo.algo.advantages import AdvantageEstimator, Center, ScaleByStd, chain
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.algo.filters import Filter, keep_all
from grupo.algo.losses import Clip, Loss
from grupo.algo.minibatches import SingleUpdate, UpdatePlan
from grupo.algo.replay_rules import ReplayRule, no_replay
from grupo.core.component import component, component_fields, to_code, walk
from grupo.core.controllers import Controller
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.requires import Provides, Requires, merged_provides, merged_requires
from grupo.rollouts.curricula import Curriculum, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler, Sampler
from grupo.util import html


@component
class Method:
    """A training method with nine slots; the defaults are GRPO without a KL penalty.

    A step calls the slots in this order; R rollouts lie in N rows of at most T actions.

    Args:
        curriculum: Chooses the tasks of a step. Called once a step, and again while the filter
            leaves too few groups: `(request) -> tasks`.
        sampler: Generates the rollouts of a task. Called once a task, and all tasks run at the
            same time: `async (task, env, actor) -> group`.
        filter: Selects the groups that are trained on. Called whenever new groups are scored:
            `(groups) -> groups`.
        advantage: Computes advantages from rewards. Called once a step, with all its rollouts:
            `(x, batch) -> x`, of shape (R,) or (N, T).
        replay: Chooses rollouts of earlier steps that join the batch. Called once a step, after
            the advantages: `(request) -> plan`.
        updates: Divides the step into epochs and minibatches. Called once a step:
            `(batch, rng) -> minibatches`.
        aggregation: Weight of each action in the sum of losses. Called once an update, with its
            minibatch: `(batch) -> weights`, of shape (N, T).
        loss: Loss of each action from signals such as `logp`. Called once a micro-batch, or, if
            it couples rows, once an update with the minibatch: `(pi, batch) -> losses`, (N, T).
        reference: Moves the reference policy towards the trained one. Called after each step.

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
    replay: ReplayRule = no_replay

    def replace(self, **changes: Any) -> "Method":
        """The same method with some slots changed."""
        return replace(self, **changes)

    def _repr_html_(self) -> str:
        """The slots in a notebook; those that differ from GRPO's, with GRPO's component."""
        changed = changed_slots(self)
        rows = [
            (
                f"<b>{name}</b>" if name in changed else name,
                html.code(to_code(value)),
                html.code(to_code(getattr(Method(), name))) if name in changed else "",
            )
            for name, value in component_fields(self).items()
        ]
        return html.fragment(html.table(("slot", "component", "in place of GRPO's"), rows))

    @property
    def requires(self) -> Requires:
        """The inputs of the method's components, at any depth."""
        return merged_requires(*component_fields(self).values())

    @property
    def provides(self) -> Provides:
        """The additions of the method's components to rollouts, at any depth."""
        return merged_provides(*component_fields(self).values())

    @property
    def controller_metric_names(self) -> frozenset[str]:
        """Metrics that the method's controllers read."""
        return frozenset(part.metric for part in self._components() if isinstance(part, Controller))

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
