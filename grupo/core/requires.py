"""Declarations of components: what a component reads, and what it adds to rollouts.

A component declares what it reads as its attribute `requires`, and what it adds as its attribute
`provides`: a class attribute, or a property if it depends on the component's fields. A plain
function declares what it reads by the decorator `declares`. The trainer merges the declarations of
all components of a method and computes what is required; whatever no part of the recipe provides is
an error before the run begins.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import FunctionType
from typing import Any, TypeVar

from grupo.core.aux_heads import AuxHead
from grupo.core.component import walk
from grupo.core.declared_values import (
    checked_count,
    checked_flag,
    checked_heads,
    checked_names,
    checked_roles,
    checked_rules,
    checked_statistics,
)
from grupo.core.kept_rollouts import KeepRule
from grupo.core.reward_range import RewardRange, checked_range, common_range
from grupo.core.task_statistic import TaskStatistic

D = TypeVar("D", "Requires", "Provides")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, init=False)
class Requires:
    """Inputs of a component, and how it reads them; declarations are merged with `|`.

    Args:
        signals: Signals that are computed once per step and read in `batch.signals`, such as
            `logp@ref` or `step/reward`.
        recomputed_signals: Signals that are computed in every update and read in `pi`, with a
            gradient, such as `entropy`. `logp` need not be declared.
        reward_terms: Reward terms that are read in `batch.reward_terms`.
        task_statistics: Statistics over a task's earlier groups, whose states are read in
            `batch.history`, or by a curriculum in `request.history`.
        source_statistics: Statistics over the earlier groups of all tasks of a source, whose states
            a curriculum reads in `request.history.statistics_of_source(task.source)`.
        columns: Columns of the tasks that are read.
        heads: Auxiliary heads, which are trained beside the policy.
        replay_rules: Rules by which the history keeps rollouts of a task. A rollout that any rule
            keeps is read in `task.replays`.
        replay_buffer: Number of stored rollouts of earlier steps that `Method.replay` chooses from.
        demonstrations: Number of other solved tasks that are read in `task.demonstrations`.
        unfinished_rollouts: Whether `task.unfinished_rollouts` is read, and continued.
        current_heads: Whether generation reads the heads, and so may not run ahead of the updates.
        whole_batch: Whether the result for one group depends on the other groups of the batch.
        coupled_rows: Whether the loss of a row depends on the signals of other rows.
        coupled_sequences: Whether it depends on those of other rows of its sequence: rows of a
            rollout that a chat template forked.
        surrogate_gradient: Whether the gradient deliberately differs from that of the loss.
        bounded_rewards: Reward terms, or "reward", that are labels or have a fixed range. Only
            `grupo methods check` reads this: it does not replace them by extreme rewards.
        reward_range: Smallest and largest reward that the component's absolute constants assume;
            None if it has none. Rewards of an environment that declares another range, and observed
            rewards outside of it, are errors.

    >>> Requires(signals=["logp@ref"]) | Requires(recomputed_signals=["entropy"], replay_buffer=2)
    Requires(signals=['logp@ref'], recomputed_signals=['entropy'], replay_buffer=2)
    """

    signals: frozenset[str]
    recomputed_signals: frozenset[str]
    reward_terms: frozenset[str]
    task_statistics: tuple[TaskStatistic, ...]
    source_statistics: tuple[TaskStatistic, ...]
    columns: frozenset[str]
    heads: tuple[AuxHead, ...]
    replay_rules: tuple[KeepRule, ...]
    replay_buffer: int
    demonstrations: int
    unfinished_rollouts: bool
    current_heads: bool
    whole_batch: bool
    coupled_rows: bool
    coupled_sequences: bool
    surrogate_gradient: bool
    bounded_rewards: frozenset[str]
    reward_range: RewardRange | None

    def __init__(
        self,
        *,
        signals: Iterable[str] = (),
        recomputed_signals: Iterable[str] = (),
        reward_terms: Iterable[str] = (),
        task_statistics: Iterable[TaskStatistic] = (),
        source_statistics: Iterable[TaskStatistic] = (),
        columns: Iterable[str] = (),
        heads: Iterable[AuxHead] = (),
        replay_rules: Iterable[KeepRule] = (),
        replay_buffer: int = 0,
        demonstrations: int = 0,
        unfinished_rollouts: bool = False,
        current_heads: bool = False,
        whole_batch: bool = False,
        coupled_rows: bool = False,
        coupled_sequences: bool = False,
        surrogate_gradient: bool = False,
        bounded_rewards: Iterable[str] = (),
        reward_range: RewardRange | None = None,
    ) -> None:
        values = {
            "signals": checked_names("signals", signals),
            "recomputed_signals": checked_names("recomputed_signals", recomputed_signals),
            "reward_terms": checked_names("reward_terms", reward_terms),
            "task_statistics": checked_statistics("task_statistics", task_statistics),
            "source_statistics": checked_statistics("source_statistics", source_statistics),
            "columns": checked_names("columns", columns),
            "heads": checked_heads(heads),
            "replay_rules": checked_rules(replay_rules),
            "replay_buffer": checked_count("replay_buffer", replay_buffer),
            "demonstrations": checked_count("demonstrations", demonstrations),
            "unfinished_rollouts": checked_flag("unfinished_rollouts", unfinished_rollouts),
            "current_heads": checked_flag("current_heads", current_heads),
            "whole_batch": checked_flag("whole_batch", whole_batch),
            "coupled_rows": checked_flag("coupled_rows", coupled_rows),
            "coupled_sequences": checked_flag("coupled_sequences", coupled_sequences),
            "surrogate_gradient": checked_flag("surrogate_gradient", surrogate_gradient),
            "bounded_rewards": checked_names("bounded_rewards", bounded_rewards),
            "reward_range": checked_range("reward_range", reward_range),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def all_signals(self) -> frozenset[str]:
        """The signals besides `logp` that are read, computed once per step or in every update."""
        return self.signals | self.recomputed_signals

    def __or__(self, other: "Requires") -> "Requires":
        return Requires(
            signals=self.signals | other.signals,
            recomputed_signals=self.recomputed_signals | other.recomputed_signals,
            reward_terms=self.reward_terms | other.reward_terms,
            task_statistics=(*self.task_statistics, *other.task_statistics),
            source_statistics=(*self.source_statistics, *other.source_statistics),
            columns=self.columns | other.columns,
            heads=(*self.heads, *other.heads),
            replay_rules=(*self.replay_rules, *other.replay_rules),
            replay_buffer=max(self.replay_buffer, other.replay_buffer),
            demonstrations=max(self.demonstrations, other.demonstrations),
            unfinished_rollouts=self.unfinished_rollouts or other.unfinished_rollouts,
            current_heads=self.current_heads or other.current_heads,
            whole_batch=self.whole_batch or other.whole_batch,
            coupled_rows=self.coupled_rows or other.coupled_rows,
            coupled_sequences=self.coupled_sequences or other.coupled_sequences,
            surrogate_gradient=self.surrogate_gradient or other.surrogate_gradient,
            bounded_rewards=self.bounded_rewards | other.bounded_rewards,
            reward_range=common_range(self.reward_range, other.reward_range),
        )

    def __repr__(self) -> str:
        return _repr_of_set_fields(self)


@dataclass(frozen=True, init=False)
class Provides:
    """Additions of a sampler to the rollouts of a group; declarations are merged with `|`.

    Args:
        reward_terms: Reward terms that it adds to those of the environment.
        roles: Roles that it gives to rollouts; each role may be a policy of its own.
        trained_roles: Roles of the rollouts in a group, "" for that of the main policy. Without a
            declaration, only the main policy's rollouts are in a group.
        given: Whether its actions are given texts. They have no old log-probability, and a loss
            that reads one is a `ConfigError`.
    """

    reward_terms: frozenset[str]
    roles: frozenset[str]
    trained_roles: frozenset[str]
    given: bool

    def __init__(
        self,
        *,
        reward_terms: Iterable[str] = (),
        roles: Iterable[str] = (),
        trained_roles: Iterable[str] = (),
        given: bool = False,
    ) -> None:
        object.__setattr__(self, "reward_terms", checked_names("reward_terms", reward_terms))
        object.__setattr__(self, "roles", checked_names("roles", roles))
        roles_in_groups = checked_roles("trained_roles", trained_roles)
        object.__setattr__(self, "trained_roles", roles_in_groups)
        object.__setattr__(self, "given", checked_flag("given", given))

    def __or__(self, other: "Provides") -> "Provides":
        return Provides(
            reward_terms=self.reward_terms | other.reward_terms,
            roles=self.roles | other.roles,
            trained_roles=self.trained_roles | other.trained_roles,
            given=self.given or other.given,
        )

    def __repr__(self) -> str:
        return _repr_of_set_fields(self)


def declares(requires: Requires) -> Callable[[F], F]:
    """Decorator of a plain function that declares what it reads, as a component does.

    >>> @declares(Requires(signals=["logp@ref"]))
    ... def reference(pi, batch):
    ...     return batch.signals["logp@ref"]
    >>> merged_requires(reference)
    Requires(signals=['logp@ref'])
    """

    def decorate(function: F) -> F:
        setattr(function, "requires", requires)  # noqa: B010 - functions have no such field
        return function

    return decorate


def merged_requires(*values: object) -> Requires:
    """The merged inputs of the components inside the values, at any depth.

    >>> from grupo.algo.losses import KL, Clip, Entropy
    >>> merged_requires(Clip() + 0.1 * KL() + 0.1 * Entropy())
    Requires(signals=['logp@ref'], recomputed_signals=['entropy'])
    """
    return reduce(or_, _declarations(values, "requires", Requires), Requires())


def merged_provides(*values: object) -> Provides:
    """The merged additions of the components inside the values, at any depth."""
    return reduce(or_, _declarations(values, "provides", Provides), Provides())


def _declarations(values: Iterable[object], name: str, kind: type[D]) -> Iterator[D]:
    """The attribute `name` of every component that declares it."""
    for part in _components(values):
        # of the type, because hasattr of an object hides errors within a property
        if hasattr(part if isinstance(part, FunctionType) else type(part), name):
            declaration = getattr(part, name)
            if not isinstance(declaration, kind):
                place = f"{type(part).__name__}.{name}"
                raise TypeError(f"{place}: {declaration!r}. Allowed: {kind.__name__}(…).")
            yield declaration


def _components(values: Iterable[object]) -> Iterator[object]:
    """The components inside the values, at any depth; classes are left out."""
    parts = (part for value in values for part in walk(value))
    return (part for part in parts if not isinstance(part, type))


def _repr_of_set_fields(declaration: Requires | Provides) -> str:
    """The code that makes a declaration, without empty fields."""
    values = {name: value for name, value in vars(declaration).items() if value}
    shown = (
        f"{name}={sorted(value) if isinstance(value, frozenset) else value!r}"
        for name, value in values.items()
    )
    return f"{type(declaration).__name__}({', '.join(shown)})"
