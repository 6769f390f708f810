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

from grupo.algo.advantages import Credit
from grupo.config.overrides import SAID, say
from grupo.config.validate_ranges import check_ranges
from grupo.config.validate_signals import check_readings
from grupo.core.batch import Batch, Past
from grupo.core.component import is_piece, parts, show, walk
from grupo.core.controllers import Controller
from grupo.core.errors import Refused, Unmeasured, nearest
from grupo.core.schedules import Schedule, at
from grupo.core.serialization import cast, fits, to_data
from grupo.core.types import Task
from grupo.envs import SingleTurn
from grupo.method import Method
from grupo.models.multi_policy_spec import Role
from grupo.recipe import Recipe

LOOKED_AT = 2000  # tasks that are looked at beforehand; of most sets, all


@runtime_checkable
class Admits(Protocol):
    """Whoever can be asked only some tasks."""

    def admit(self, tasks: Sequence[Task]) -> None: ...


@runtime_checkable
class Checked(Protocol):
    """A piece that needs something of the machine: `check` refuses one that lacks it."""

    def check(self) -> None: ...


def check(recipe: Recipe) -> None:
    """Refuse what cannot be, with one clear message about the first."""
    for place, piece in _pieces(recipe, ""):
        _check_types(piece, place)
        check_ranges(piece, place)
    _check_rate("lr", recipe.lr, recipe.steps)
    _check_rate("helper_lr", recipe.helper_lr, recipe.steps)
    _check_group(recipe)
    _check_solved(recipe)
    check_readings(recipe)
    _check_roles(recipe)
    _check_ahead(recipe)
    for _, piece in _pieces(recipe, ""):
        if isinstance(piece, Checked):
            piece.check()
    to_data(recipe)  # a run folder must be able to hold it


def check_columns(method: Method, tasks: Sequence[Task]) -> None:
    """Refuse a method that reads a column which no task has, or of which a piece refuses tasks."""
    for name in sorted(method.reads_columns):
        some = [tasks[i].columns for i in range(min(len(tasks), LOOKED_AT))]
        if not any(name in columns for columns in some):
            known = dict.fromkeys(column for columns in some for column in columns)
            said = f"tasks: the method reads their column {name!r}, and none has it."
            raise Refused(f"{said} {nearest(name, known)}")
    check_admitted(method, tasks)


def check_admitted(whole: object, *tasks: Sequence[Task]) -> None:
    """Refuse tasks that a piece of it cannot be asked."""
    for part in walk(whole):
        if isinstance(part, Admits):
            check_tasks(part, *tasks)


def check_tasks(policy: Admits, *tasks: Sequence[Task]) -> None:
    """Refuse tasks that the policy cannot be asked."""
    for some in tasks:
        policy.admit([some[i] for i in range(min(len(some), LOOKED_AT))])


def _pieces(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every piece of a recipe, and where it lies: "" and then "policy.", "method.sample." …"""
    if is_piece(value):
        yield place, value
        for name, inside in parts(value).items():
            yield from _pieces(inside, f"{place}{name}.")
    if isinstance(value, tuple):
        for number, inside in enumerate(value):
            yield from _pieces(inside, f"{place[:-1]}[{number}].")


def _check_types(piece: Any, place: str) -> None:
    """Refuse values of another type; a schedule may stand for any float of the method."""
    hints = typing.get_type_hints(type(piece))
    for name, value in parts(piece).items():
        hint = hints[name]
        changes = isinstance(value, Schedule | Controller) and place.startswith("method.")
        if changes and fits(0.0, hint):
            continue
        if _plain(hint) and not fits(cast(value, hint), hint):
            raise Refused(f"{place}{name}: {show(value)} does not fit. Allowed: {say(hint)}.")


def _plain(hint: Any) -> bool:
    """Is this a type of which messages can say in words what fits?"""
    if typing.get_origin(hint) in (typing.Union, types.UnionType, tuple):
        return all(_plain(one) for one in typing.get_args(hint) if one is not ...)
    return isinstance(hint, type) and (hint in SAID or hint is Schedule or is_dataclass(hint))


def _check_rate(name: str, rate: float | Schedule, steps: int) -> None:
    for step in (0, steps // 2, steps - 1):
        lr = at(rate, (step + 0.5) / steps)
        if not 0 <= lr < math.inf:
            when = f", {lr} at step {step}" * isinstance(rate, Schedule)
            raise Refused(f"{name}: {show(rate)}{when}. Allowed: 0 or more, finite.")


def _check_group(recipe: Recipe) -> None:
    if recipe.group == 1 and _says_nothing_alone(recipe.method.credit):
        raise Refused(
            "method.sample: a group of 1 has nobody to be compared with, so that its advantage"
            " is 0. Allowed: 2 or more with this credit."
        )


def _says_nothing_alone(credit: Credit) -> bool:
    """Do two lone rollouts get no advantage, whatever their rewards, where a pair gets some?"""
    with suppress(Unmeasured):
        return not _credited(credit, (0, 1)).any() and bool(_credited(credit, (0, 0)).any())
    return False


def _credited(credit: Credit, groups: tuple[int, int]) -> Tensor:
    """What two rollouts of one action each, right and wrong, are credited with."""
    mask, reward = torch.ones(2, 1).bool(), torch.tensor([1.0, 0.0], dtype=torch.float64)
    rows = {"rollout": torch.arange(2), "mask": mask, "old_logp": -mask.float()}
    batch = Batch.of(reward, torch.tensor(groups), **rows, past=(Past(), Past()))
    return credit(reward, batch)


def _check_roles(recipe: Recipe) -> None:
    """Refuse a policy for a role that nobody has."""
    for place, piece in _pieces(recipe, ""):
        if isinstance(piece, Role) and piece.name not in recipe.method.roles:
            said = f"{place}name: {piece.name!r} is no role of the method."
            raise Refused(f"{said} {nearest(piece.name, recipe.method.roles)}")


def _check_ahead(recipe: Recipe) -> None:
    """Refuse to sample ahead by what is learned meanwhile."""
    for part in walk(recipe.method.sample):
        if recipe.staleness and getattr(part, "asks_helpers", False):
            raise Refused(f"staleness: {recipe.staleness}. Allowed: 0 with {type(part).__name__}.")


def _check_solved(recipe: Recipe) -> None:
    """Refuse to count as solved by a part of the reward that the world does not give."""
    part, env = recipe.evaluation.solved.part, recipe.env
    if part and isinstance(env, SingleTurn):
        names = [reward.name for reward in env.rewards]
        if part.partition("/")[0] not in names:
            raise Refused(f"evaluation.solved.part: {part!r}. {nearest(part, names)}")
