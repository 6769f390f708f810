"""The border: what a recipe asks for is looked at once, before any work starts."""

import math
import types
import typing
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from grupo.algo.advantages import AdvantageEstimator
from grupo.config.overrides import TYPE_NAMES, describe_type
from grupo.config.validate_ranges import check_ranges
from grupo.config.validate_signals import check_required_signals
from grupo.core.batch import Batch, TaskHistory
from grupo.core.component import component_fields, is_component, to_code, walk
from grupo.core.controllers import Controller
from grupo.core.errors import ConfigError, MissingSignalError, suggest
from grupo.core.schedules import Schedule, resolve_schedules
from grupo.core.serialization import coerce_number, matches_type, to_data
from grupo.core.types import Task
from grupo.envs import SingleTurn
from grupo.method import Method
from grupo.models.multi_policy_spec import RolePolicy
from grupo.recipe import Recipe

MAX_TASKS_CHECKED = 2000  # tasks that are looked at beforehand; of most sets, all


@runtime_checkable
class TaskValidator(Protocol):
    """Whoever can be asked only some tasks."""

    def validate_tasks(self, tasks: Sequence[Task]) -> None: ...


@runtime_checkable
class SelfChecking(Protocol):
    """A piece that needs something of the machine: `check` refuses one that lacks it."""

    def check(self) -> None: ...


def check_recipe(recipe: Recipe) -> None:
    """Refuse what cannot be, with one clear message about the first."""
    for place, piece in _components(recipe, ""):
        _check_types(piece, place)
        check_ranges(piece, place)
    _check_learning_rate("lr", recipe.learning_rate, recipe.max_steps)
    _check_learning_rate("helper_lr", recipe.aux_head_learning_rate, recipe.max_steps)
    _check_group(recipe)
    _check_success_criterion(recipe)
    check_required_signals(recipe)
    _check_roles(recipe)
    _check_staleness(recipe)
    for _, piece in _components(recipe, ""):
        if isinstance(piece, SelfChecking):
            piece.check()
    to_data(recipe)  # a run folder must be able to hold it


def check_columns(method: Method, tasks: Sequence[Task]) -> None:
    """Refuse a method that reads a column which no task has, or of which a piece refuses tasks."""
    for name in sorted(method.required_columns):
        some = [tasks[i].columns for i in range(min(len(tasks), MAX_TASKS_CHECKED))]
        if not any(name in columns for columns in some):
            known = dict.fromkeys(column for columns in some for column in columns)
            said = f"tasks: the method reads their column {name!r}, and none has it."
            raise ConfigError(f"{said} {suggest(name, known)}")
    check_component_tasks(method, tasks)


def check_component_tasks(root: object, *tasks: Sequence[Task]) -> None:
    """Refuse tasks that a piece of it cannot be asked."""
    for part in walk(root):
        if isinstance(part, TaskValidator):
            check_tasks(part, *tasks)


def check_tasks(validator: TaskValidator, *tasks: Sequence[Task]) -> None:
    """Refuse tasks that the policy cannot be asked."""
    for some in tasks:
        validator.validate_tasks([some[i] for i in range(min(len(some), MAX_TASKS_CHECKED))])


def _components(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every piece of a recipe, and where it lies: "" and then "policy.", "method.sample." …"""
    if is_component(value):
        yield place, value
        for name, inside in component_fields(value).items():
            yield from _components(inside, f"{place}{name}.")
    if isinstance(value, tuple):
        for number, inside in enumerate(value):
            yield from _components(inside, f"{place[:-1]}[{number}].")


def _check_types(component: Any, path: str) -> None:
    """Refuse values of another type; a schedule may stand for any float of the method."""
    hints = typing.get_type_hints(type(component))
    for name, value in component_fields(component).items():
        hint = hints[name]
        changes = isinstance(value, Schedule | Controller) and path.startswith("method.")
        if changes and matches_type(0.0, hint):
            continue
        if _is_describable(hint) and not matches_type(coerce_number(value, hint), hint):
            raise ConfigError(
                f"{path}{name}: {to_code(value)} does not fit. Allowed: {describe_type(hint)}."
            )


def _is_describable(hint: Any) -> bool:
    """Is this a type of which messages can say in words what fits?"""
    if typing.get_origin(hint) in (typing.Union, types.UnionType, tuple):
        return all(_is_describable(one) for one in typing.get_args(hint) if one is not ...)
    return isinstance(hint, type) and (hint in TYPE_NAMES or hint is Schedule or is_dataclass(hint))


def _check_learning_rate(name: str, rate: float | Schedule, steps: int) -> None:
    for step in (0, steps // 2, steps - 1):
        lr = resolve_schedules(rate, (step + 0.5) / steps)
        if not 0 <= lr < math.inf:
            when = f", {lr} at step {step}" * isinstance(rate, Schedule)
            raise ConfigError(f"{name}: {to_code(rate)}{when}. Allowed: 0 or more, finite.")


def _check_group(recipe: Recipe) -> None:
    if recipe.group_size == 1 and _is_zero_for_lone_rollouts(recipe.method.advantage):
        raise ConfigError(
            "method.sample: a group of 1 has nobody to be compared with, so that its advantage"
            " is 0. Allowed: 2 or more with this credit."
        )


def _is_zero_for_lone_rollouts(estimator: AdvantageEstimator) -> bool:
    """Do two lone rollouts get no advantage, whatever their rewards, where a pair gets some?"""
    with suppress(MissingSignalError):
        return not _advantages_of_pair(estimator, (0, 1)).any() and bool(
            _advantages_of_pair(estimator, (0, 0)).any()
        )
    return False


def _advantages_of_pair(estimator: AdvantageEstimator, groups: tuple[int, int]) -> Tensor:
    """What two rollouts of one action each, right and wrong, are credited with."""
    mask, reward = torch.ones(2, 1).bool(), torch.tensor([1.0, 0.0], dtype=torch.float64)
    rows = {"rollout": torch.arange(2), "mask": mask, "old_logp": -mask.float()}
    batch = Batch.of(reward, torch.tensor(groups), **rows, past=(TaskHistory(), TaskHistory()))
    return estimator(reward, batch)


def _check_roles(recipe: Recipe) -> None:
    """Refuse a policy for a role that nobody has."""
    for place, piece in _components(recipe, ""):
        if isinstance(piece, RolePolicy) and piece.name not in recipe.method.roles:
            said = f"{place}name: {piece.name!r} is no role of the method."
            raise ConfigError(f"{said} {suggest(piece.name, recipe.method.roles)}")


def _check_staleness(recipe: Recipe) -> None:
    """Refuse to sample ahead by what is learned meanwhile."""
    for part in walk(recipe.method.sampler):
        if recipe.max_staleness and getattr(part, "requires_heads", False):
            raise ConfigError(
                f"staleness: {recipe.max_staleness}. Allowed: 0 with {type(part).__name__}."
            )


def _check_success_criterion(recipe: Recipe) -> None:
    """Refuse to count as solved by a part of the reward that the world does not give."""
    part, env = recipe.evaluation.success.reward_term, recipe.env
    if part and isinstance(env, SingleTurn):
        names = [reward.name for reward in env.rewards]
        if part.partition("/")[0] not in names:
            raise ConfigError(f"evaluation.solved.part: {part!r}. {suggest(part, names)}")
