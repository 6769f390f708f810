"""ALP: the length penalty in an easy and in a hard group."""

import pytest

from grupo.methods.alp import EaseScaledLengthPenalty, alp
from grupo.testing.batches import make_batch


def test_token_penalty_grows_with_the_solve_rate():
    correct = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    batch = make_batch(
        [0] * 4 + [1] * 4, correct, length=[1, 2, 3, 4] * 2, reward_terms={"correct": correct}
    )
    r = EaseScaledLengthPenalty(0.1)(batch.reward, batch).tolist()
    assert r[:4] == pytest.approx([1 - 0.075, 1 - 0.15, 1 - 0.225, -0.3])  # p = 3/4
    assert r[4:] == pytest.approx([-0.025, -0.05, -0.075, -0.1])  # p = 0: 1/K = 1/4


def test_length_is_the_whole_advantage_if_all_are_correct():
    batch = make_batch([0, 0], [1.0, 1.0], length=[500, 1500], reward_terms={"correct": [1.0, 1.0]})
    advantage = batch.with_advantage(alp().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=0.02)  # rewards differ by 1e-4


def test_length_hardly_matters_if_outcomes_differ():
    batch = make_batch([0, 0], [1.0, 0.0], length=[9000, 1], reward_terms={"correct": [1.0, 0.0]})
    advantage = batch.with_advantage(alp().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)
