from math import sqrt

import pytest

from grupo.algo.advantages import Center, ClampAdvantage, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.component import component, component_fields, is_component, to_code, walk
from grupo.core.schedules import Linear


@component
class Pair:
    left: object
    right: object = group_ops.mean


def test_a_piece_prints_as_the_code_that_makes_it():
    assert (
        repr(Clip(0.1, Linear(0.2, 0.3)))
        == "Clip(clip_low=0.1, clip_high=Linear(start=0.2, end=0.3))"
    )


def test_a_function_left_at_its_default_goes_without_saying():
    assert repr(Pair(1)) == "Pair(left=1)"
    assert repr(Pair(1, group_ops.max)) == "Pair(left=1, right=group_ops.max)"


def test_equal_pieces_print_alike_though_their_parts_are_copies():
    @component
    class Holder:
        credit: Center = Center()

    assert repr(Holder(Center())) == repr(Holder()) == "Holder(advantage=Center())"


def test_show_names_functions_types_and_builtins_without_addresses():
    values = (sqrt, len, int, Clip, group_ops.median, {"a": (group_ops.min,)})
    assert [to_code(value) for value in values] == [
        "math.sqrt",
        "len",
        "int",
        "surrogate.Clip",
        "group_ops.median",
        "{'a': (group_ops.min,)}",
    ]


def test_pieces_compare_hash_and_stay_as_they_are():
    assert len({Clip(0.1, 0.2), Clip(0.1, 0.2), Clip(0.2, 0.2)}) == 2
    with pytest.raises(AttributeError):
        Clip().clip_low = 0.5  # pyright: ignore[reportAttributeAccessIssue]


def test_parts_are_the_fields_by_name():
    assert component_fields(ClampAdvantage(-1.0, 2.0)) == {"low": -1.0, "high": 2.0}
    assert is_component(ClampAdvantage(0.0, 1.0))
    assert not is_component(ClampAdvantage)


def test_walk_finds_what_lies_inside_tuples_maps_and_pieces():
    inside = [*walk(Pair({"credit": chain(ScaleByStd(), Center())}, [Clip() + 0.1 * KL()]))]
    for part in (ScaleByStd(), Center(), Clip(), KL(), 0.1, group_ops.mean, group_ops.std):
        assert part in inside
