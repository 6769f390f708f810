"""Values and the types that they fit."""

import pytest

from grupo.algo.losses import Clip
from grupo.core.field_types import coerce_number, matches_type
from grupo.core.schedules import Linear
from grupo.rollouts.curricula import Curriculum, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler, Sampler


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (1, int, True),
        (True, int, False),
        (True, bool, True),
        (1, float, False),
        (None, str | None, True),
        ((1, "a"), tuple[int, str], True),
        ((1, 2), tuple[int, str], False),
        ((1,), tuple[int, str], False),
        ((), tuple[str, ...], True),
        (("a", 1), tuple[str, ...], False),
        (Clip(), Clip, True),
        (Clip(), Linear, False),
        (GroupSampler(2), Sampler, True),  # a protocol is filled by any object with its methods
        (ShuffledTasks, Curriculum, False),  # a class is not an instance
        (Linear(1, 0), Sampler, False),
    ],
)
def test_values_fit_types(value, hint, fits):
    assert matches_type(value, hint) is fits


def test_integers_become_floats_where_a_float_is_expected():
    pairs = ((1, float), (1, int), (True, float), ("1", float))
    assert [type(coerce_number(*pair)) for pair in pairs] == [float, int, bool, str]
