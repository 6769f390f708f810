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


def test_component_prints_as_the_code_that_makes_it():
    assert (
        repr(Clip(0.1, Linear(0.2, 0.3)))
        == "Clip(clip_low=0.1, clip_high=Linear(start=0.2, end=0.3))"
    )


def test_default_functions_are_not_printed():
    assert repr(Pair(1)) == "Pair(left=1)"
    assert repr(Pair(1, group_ops.max)) == "Pair(left=1, right=group_ops.max)"


def test_equal_components_print_alike_even_with_copied_fields():
    @component
    class Holder:
        advantage: Center = Center()

    assert repr(Holder(Center())) == repr(Holder()) == "Holder(advantage=Center())"


def test_to_code_names_functions_classes_and_builtins_without_addresses():
    values = (sqrt, len, int, Clip, group_ops.median, {"a": (group_ops.min,)})
    assert [to_code(value) for value in values] == [
        "math.sqrt",
        "len",
        "int",
        "policy_gradient.Clip",
        "group_ops.median",
        "{'a': (group_ops.min,)}",
    ]


def test_components_compare_and_hash_by_value_and_are_frozen():
    assert len({Clip(0.1, 0.2), Clip(0.1, 0.2), Clip(0.2, 0.2)}) == 2
    with pytest.raises(AttributeError):
        Clip().clip_low = 0.5


def test_component_fields_are_named():
    assert component_fields(ClampAdvantage(-1.0, 2.0)) == {"low": -1.0, "high": 2.0}
    assert is_component(ClampAdvantage(0.0, 1.0))
    assert not is_component(ClampAdvantage)


def test_walk_visits_tuples_mappings_and_components():
    visited = [*walk(Pair({"advantage": chain(ScaleByStd(), Center())}, [Clip() + 0.1 * KL()]))]
    for part in (ScaleByStd(), Center(), Clip(), KL(), 0.1, group_ops.mean, group_ops.std):
        assert part in visited
