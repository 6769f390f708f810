"""TLDR: length costs what the level says."""

import pytest

from grupo.methods.tldr import Levelled, tldr
from grupo.testing.batches import batch_of

SHORT, MEDIUM, LONG = 0.0, 1.0, 2.0


def batch(level, reward, length):
    return batch_of(group=[0] * len(level), reward=reward, length=length, parts={"level": level})


def test_length_costs_most_where_short_was_asked_for():
    b = batch([SHORT, MEDIUM, LONG], [1.0] * 3, [2] * 3)
    r = Levelled(limit=5, prices=(0.5, 0.25, 0.0))(b.reward, b)
    assert r.tolist() == pytest.approx([0.8, 0.9, 1.0])  # 2/5 of the limit


def test_the_wrong_earn_nothing_however_short():
    b = batch([SHORT] * 2, [0.0, 0.0], [1, 5])
    assert Levelled(5, (0.5, 0.25, 0.0))(b.reward, b).tolist() == [0.0, 0.0]


def test_beyond_the_limit_it_costs_no_more():
    b = batch([SHORT] * 2, [1.0, 1.0], [5, 50])
    assert Levelled(5, (0.5, 0.25, 0.0))(b.reward, b).tolist() == [0.5, 0.5]


def test_only_rollouts_of_one_level_are_compared():
    b = batch([SHORT, SHORT, LONG, LONG], [1.0] * 4, [1, 4, 1, 4])
    advantage = b.credited(tldr(limit=4).credit).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5), 0.0, 0.0], rel=1e-5)


def test_the_defaults():
    assert tldr(limit=9) == tldr(9, group=8, prices=(0.5, 0.25, 0.0))
