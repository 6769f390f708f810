"""ALP: the price of a token in an easy group and in a hard one."""

import pytest

from grupo.methods.alp import EaseScaledLengthPenalty, alp
from grupo.testing.batches import make_batch


def test_tokens_cost_more_where_more_are_right():
    correct = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    batch = make_batch(
        [0] * 4 + [1] * 4, correct, length=[1, 2, 3, 4] * 2, reward_terms={"correct": correct}
    )
    r = EaseScaledLengthPenalty(0.1)(batch.reward, batch).tolist()
    assert r[:4] == pytest.approx([1 - 0.075, 1 - 0.15, 1 - 0.225, -0.3])  # p = 3/4
    assert r[4:] == pytest.approx([-0.025, -0.05, -0.075, -0.1])  # p = 0: 1/K = 1/4


def test_where_all_are_right_length_is_the_whole_advantage():
    batch = make_batch([0, 0], [1.0, 1.0], length=[500, 1500], reward_terms={"correct": [1.0, 1.0]})
    advantage = batch.with_advantage(alp().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=0.02)  # rewards differ by 1e-4


def test_where_outcomes_differ_length_hardly_matters():
    batch = make_batch([0, 0], [1.0, 0.0], length=[9000, 1], reward_terms={"correct": [1.0, 0.0]})
    advantage = batch.with_advantage(alp().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)


def test_the_defaults():
    assert alp() == alp(group_size=16, length_coef=1e-7)
