"""Kimi length penalty: three lengths, right and wrong."""

import pytest

from grupo.methods.kimi_length import BrevityBonus, kimi_length
from grupo.testing.batches import make_batch


def rewards(length, correct, weight=1.0):
    batch = make_batch([0] * len(length), correct, length=length, reward_terms={"correct": correct})
    return BrevityBonus(weight)(batch.reward, batch).tolist()


def test_the_right_gain_and_lose_by_length():
    assert rewards([1, 3, 2], [1.0] * 3) == [1.5, 0.5, 1.0]


def test_the_wrong_only_lose():
    assert rewards([1, 3, 2], [0.0, 0.0, 1.0]) == [0.0, -0.5, 1.0]


def test_equal_lengths_change_nothing():
    assert rewards([2, 2], [1.0, 0.0]) == [1.0, 0.0]


def test_the_penalty_is_weighted():
    assert rewards([1, 3], [1.0, 1.0], weight=0.2) == [1.1, 0.9]


def test_where_all_are_right_the_short_have_the_advantage():
    batch = make_batch([0, 0], [1.0, 1.0], length=[1, 3], reward_terms={"correct": [1.0, 1.0]})
    advantage = batch.with_advantage(kimi_length().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)
