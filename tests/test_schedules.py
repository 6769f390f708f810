from math import cos, pi

import pytest

from grupo.credit import Center, Clipped, chain
from grupo.losses import KL, Clip
from grupo.method import Method
from grupo.schedules import Cosine, Linear, Warmup, at


def test_linear_goes_in_a_straight_line():
    line = Linear(2.0, -2.0)
    assert [line.value(p) for p in (0.0, 0.25, 1.0)] == [2.0, 1.0, -2.0]


def test_cosine_goes_along_half_a_cosine():
    wave = Cosine(3.0, 1.0)
    assert wave.value(0.0) == 3.0
    assert wave.value(0.25) == pytest.approx(1 + 2 * (1 + cos(pi / 4)) / 2)
    assert wave.value(1.0) == pytest.approx(1.0)


def test_warmup_rises_over_its_share_to_what_comes_then():
    assert [Warmup(0.2, 3.0).value(p) for p in (0.0, 0.1, 0.2, 1.0)] == [0.0, 1.5, 3.0, 3.0]
    assert Warmup(0.5, Linear(4.0, 0.0)).value(0.25) == 3.0 * 0.5


def test_at_puts_numbers_in_place_of_schedules_however_deep():
    method = Method(
        credit=chain(Center(), Clipped(Linear(-1.0, -2.0), 1.0)),
        loss=Clip() + Linear(0.4, 0.0) * KL(),
    )
    now = at(method, 0.5)
    assert now.credit == chain(Center(), Clipped(-1.5, 1.0))
    assert now.loss == Clip() + 0.2 * KL()


def test_what_has_no_schedule_is_left_as_it_is():
    method = Method()
    assert at(method, 0.5) is method
