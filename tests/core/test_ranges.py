import math
from dataclasses import replace
from typing import Annotated, Literal

import pytest
import torch
from annotated_types import Ge, Interval, MultipleOf

from grupo.algo.losses import Clip
from grupo.config.overrides import set_field
from grupo.core.component import check_field, component
from grupo.core.controllers import LastValue
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.ranges import FiniteSeconds, NonEmptyString, describe_range, range_violation
from grupo.core.schedules import Linear, resolve_schedules
from grupo.util.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "hint", "allowed"),
    [
        (0, PositiveInt, "1 or more"),
        (-0.1, NonNegative, "0 or more"),
        (0.0, Positive, "above 0"),
        (1.5, Fraction, "0 to 1"),
        (math.nan, NonNegative, "0 or more"),
        (math.inf, FiniteSeconds, "above 0, finite; seconds"),
        ("", NonEmptyString, "not empty"),
        ("int8", Literal["float32", "bfloat16"], "float32 or bfloat16"),
        ((1, 0), tuple[PositiveInt, ...], "1 or more"),
        ((("a", 2.0),), tuple[tuple[str, Fraction], ...], "0 to 1"),
        (0, PositiveInt | None, "1 or more"),
        (-1, Annotated[int, Ge(0), "0 keeps all"], "0 or more; 0 keeps all"),
    ],
)
def test_a_value_out_of_range_is_answered_with_the_range(value, hint, allowed):
    assert range_violation(value, hint) == allowed


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, PositiveInt),
        (None, PositiveInt | None),
        (math.inf, NonNegative),
        (Linear(-1.0, -2.0), NonNegative),  # its numbers are checked when they are computed
        ("text", PositiveInt),  # another type is not judged here
        (-5.0, NumberOrSchedule),
        ((), tuple[PositiveInt, ...]),
    ],
)
def test_values_in_range_and_of_other_types_pass(value, hint):
    assert range_violation(value, hint) == ""


def test_an_unknown_constraint_is_an_error():
    with pytest.raises(TypeError, match="is no range of a number"):
        range_violation(3, Annotated[int, MultipleOf(2)])


def test_a_type_without_range_has_no_words():
    assert describe_range(tuple[float, ...]) == ""


@component
class Window:
    """A component of a third party, with the checks of the library's own."""

    low: NonNegative = 0.0
    high: Annotated[float, Interval(gt=0, le=1)] = 1.0

    def __post_init__(self) -> None:
        check_field(self, "low", self.low <= self.high, f"at most {self.high}")


@component
class NamedWindow(Window):
    """A subclass, with a field of its own."""

    name: NonEmptyString = "w"


def test_ranges_and_relations_are_checked_when_a_component_is_made():
    with pytest.raises(ConfigError, match=r"^Window.low: -1.0. Allowed: 0 or more.$"):
        Window(-1.0)
    with pytest.raises(ConfigError, match=r"^Window.low: 0.5. Allowed: at most 0.25.$"):
        Window(0.5, 0.25)
    with pytest.raises(ConfigError, match=r"^Window.high: 2.0. Allowed: above 0, at most 1.$"):
        replace(Window(), high=2.0)


def test_a_subclass_keeps_the_checks_of_its_base():
    with pytest.raises(ConfigError, match=r"NamedWindow.low: 0.5. Allowed: at most 0.25"):
        NamedWindow(0.5, 0.25)
    with pytest.raises(ConfigError, match=r"NamedWindow.name: ''. Allowed: not empty"):
        NamedWindow(name="")


def test_an_override_names_the_field_as_the_user_wrote_it():
    with pytest.raises(ConfigError, match=r"^clip_low: -0.1. Allowed: 0 or more.$"):
        set_field(Clip(), "clip_low", "-0.1")


def test_a_schedule_that_leaves_the_range_is_refused_when_it_is_computed():
    loss = Clip(clip_low=Linear(0.2, -0.2))
    assert resolve_schedules(loss, 0.25) == Clip(clip_low=0.1)
    with pytest.raises(ConfigError, match=r"Clip.clip_low: -0.2. Allowed: 0 or more"):
        resolve_schedules(loss, 1.0)


@pytest.mark.parametrize("number", [Linear(1.0, 2.0), LastValue("loss", 1.0)])
def test_arithmetic_with_an_unresolved_number_raises(number):
    for compute in (
        lambda: 1 - number,
        lambda: 1.0 - number,
        lambda: number * 2.0,
        lambda: number < 1.0,
        lambda: number * torch.ones(2),
        lambda: number // 2,
        lambda: number**2,
        lambda: 2**number,
        lambda: -number,
        lambda: abs(number),
        lambda: float(number),
        lambda: round(number, 2),
    ):
        with pytest.raises(TypeError, match="has no value before a step begins"):
            compute()
    assert (torch.ones(2) * number).isnan().all()


def test_unresolved_numbers_compare_by_value():
    assert Linear(1.0, 2.0) == Linear(1.0, 2.0)
    assert not Linear(1.0, 2.0) != Linear(1.0, 2.0)  # noqa: SIM202, both operators are meant
    assert Linear(1.0, 2.0) != Linear(1.0, 3.0)
    assert len({Linear(1.0, 2.0), Linear(1.0, 2.0)}) == 1
    assert Clip(0.2, Linear(0.2, 0.3)) == Clip(0.2, Linear(0.2, 0.3))
