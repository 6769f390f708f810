"""Every interval of the library states its unit, in its type and in its docstring."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Annotated

import pytest
from annotated_types import Ge

import grupo
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.schedules import Schedule
from grupo.core.units import UNITS, intervals, intervals_without_unit, unit_of
from grupo.recipe import Recipe
from grupo.util.errors import ConfigError


def members() -> Iterator[Callable]:
    """The functions and the dataclasses of the library, private ones excepted."""
    for module in pkgutil.walk_packages(grupo.__path__, "grupo."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(import_module(module.name)).items():
            is_own = getattr(value, "__module__", "") == module.name and not name.startswith("_")
            if is_own and (inspect.isfunction(value) or is_component_class(value)):
                yield value


def is_component_class(value: object) -> bool:
    return isinstance(value, type) and is_dataclass(value)


MEMBERS = tuple(members())


def test_every_interval_of_the_library_states_its_unit():
    missing = {
        f"{owner.__module__}.{owner.__qualname__}.{name}"
        for owner in MEMBERS
        for name in intervals_without_unit(owner)
    }
    assert missing == set()


def test_docstrings_name_the_unit_of_every_interval():
    stated = {}
    for owner in MEMBERS:
        for name, hint in intervals(owner).items():
            if unit := unit_of(hint):
                doc = inspect.getdoc(owner).partition(f"{name}: ")[2].partition("\n    ")[0]
                stated[f"{owner.__qualname__}.{name}"] = unit in doc.partition("\n")[0].lower()
    assert {"Recipe.save_every", "ReferenceUpdate.every", "prorl.ref_update_every"} <= set(stated)
    assert [name for name, is_named in stated.items() if not is_named] == []


def unstated(every: int, warmup: float | Schedule, lag=3, window: Annotated[int, Ge(1)] = 1):
    """A function whose intervals have no unit."""


def stated(
    every: Annotated[int, "rollout steps"],
    warmup_fraction: float,
    lag_seconds: float,
    sde_window: tuple[int, ...],
    everything: int,
    period: str,
):
    """A function whose intervals have a unit, or that has no intervals."""


def test_a_planted_interval_without_a_unit_is_found():
    assert intervals_without_unit(unstated) == ["every", "warmup", "lag", "window"]
    assert intervals_without_unit(stated) == []


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_is_found_in_a_type(unit):
    assert unit_of(Annotated[int, Ge(1), unit]) == unit


def test_the_message_of_a_wrong_interval_has_its_unit():
    with pytest.raises(ConfigError, match=r"every: 0\. Allowed: 1 or more; rollout steps\."):
        ReferenceUpdate(every=0)
    assert inspect.signature(Recipe).parameters["save_every"].default == 10
