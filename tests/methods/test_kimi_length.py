"""Kimi length penalty: three lengths, right and wrong."""

import pytest

from grupo.methods.kimi_length import PlusBrevity, kimi_length
from grupo.testing.batches import batch_of


def rewards(length, correct, weight=1.0):
    batch = batch_of([0] * len(length), correct, length=length, parts={"correct": correct})
    return PlusBrevity(weight)(batch.reward, batch).tolist()


def test_the_right_gain_and_lose_by_length():
    assert rewards([1, 3, 2], [1.0] * 3) == [1.5, 0.5, 1.0]


def test_the_wrong_only_lose():
    assert rewards([1, 3, 2], [0.0, 0.0, 1.0]) == [0.0, -0.5, 1.0]


def test_equal_lengths_change_nothing():
    assert rewards([2, 2], [1.0, 0.0]) == [1.0, 0.0]


def test_the_penalty_is_weighted():
    assert rewards([1, 3], [1.0, 1.0], weight=0.2) == [1.1, 0.9]


def test_where_all_are_right_the_short_have_the_advantage():
    batch = batch_of([0, 0], [1.0, 1.0], length=[1, 3], parts={"correct": [1.0, 1.0]})
    advantage = batch.credited(kimi_length().credit).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)


def test_the_defaults():
    assert kimi_length() == kimi_length(group=8, weight=1.0)
