"""Kimi length penalty: correct and wrong rollouts of three lengths."""

import pytest

from grupo.methods.kimi_length import BrevityBonus, kimi_length
from grupo.testing.batches import make_batch


def rewards(length, correct, weight=1.0):
    batch = make_batch([0] * len(length), correct, length=length, reward_terms={"correct": correct})
    return BrevityBonus(weight)(batch.reward, batch).tolist()


def test_correct_rollouts_are_rewarded_or_penalized_by_length():
    assert rewards([1, 3, 2], [1.0] * 3) == [1.5, 0.5, 1.0]


def test_wrong_rollouts_are_only_penalized():
    assert rewards([1, 3, 2], [0.0, 0.0, 1.0]) == [0.0, -0.5, 1.0]


def test_equal_lengths_have_zero_length_reward():
    assert rewards([2, 2], [1.0, 0.0]) == [1.0, 0.0]


def test_length_reward_is_weighted():
    assert rewards([1, 3], [1.0, 1.0], weight=0.2) == [1.1, 0.9]


def test_all_correct_group_prefers_short_rollouts():
    batch = make_batch([0, 0], [1.0, 1.0], length=[1, 3], reward_terms={"correct": [1.0, 1.0]})
    advantage = batch.with_advantage(kimi_length().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)
