"""Values that cross to actors: equal in types and bits."""

import math
import struct

import numpy as np
import pytest

from grupo.core.types import Response, RewardResult, Rollout, Seat, Task
from grupo.ray_workers.messages import from_bytes, to_bytes
from grupo.util.errors import ConfigError

RESPONSE = Response((5, 6), (-0.1, -1e-310), (1, 2), "a\ud800b")
ROLLOUT = Rollout(
    (("prompt", RESPONSE), (({"role": "tool", "content": [{"text": "x"}]},), RESPONSE)),
    1.5,
    {"part": 0.1},
    {"reward": (0.0, 1.0)},
    seat=Seat(0, 1, 2),
)
VALUES = [
    None,
    True,
    1 << 80,
    0.1 + 0.2,
    -0.0,
    math.inf,
    "",
    (),
    [],
    {},
    ((1,), [(2,)], {"a": (3,)}),
    {1: "a", (1, 2): "b", "$tuple": [1], "": 0},
    {"$tuple": [1, 2]},
    ROLLOUT,
    Task("k", ({"role": "user", "content": "p"},), (4, 2), "s", {"row": {"a": [1, (2,)]}}, "f:3"),
    Task("k", "p", replays=(ROLLOUT,)),
    RewardResult(0.1, {"a": 0.2}, {"b": (0.3,)}, "e"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_equal_after_the_way_to_an_actor(value):
    received = from_bytes(to_bytes(value, "value"))
    assert repr(received) == repr(value)
    assert received == value


def test_floats_keep_their_bits():
    numbers = [
        struct.unpack("d", struct.pack("Q", n * 0x123456789ABCDEF % 2**63))[0] for n in range(500)
    ]
    received = from_bytes(to_bytes(tuple(numbers), "numbers"))
    assert [x.hex() for x in received] == [x.hex() for x in numbers]


def test_the_reward_of_a_rollout_that_is_not_scored_stays_nan():
    assert math.isnan(from_bytes(to_bytes(Rollout(), "rollout")).reward)


def test_values_of_other_types_are_refused_with_their_place():
    task = Task("k", "p", columns={"grid": {"cells": np.zeros(3)}})
    with pytest.raises(ConfigError, match=r"task k.columns.grid.cells: a value of type ndarray"):
        to_bytes(task, "task k")
