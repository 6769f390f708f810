from math import exp, sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.grpo_lead import DifficultyWeight, ShortCorrectReward, grpo_lead
from grupo.testing.batches import make_batch


def test_correct_answers_are_rewarded_by_relative_length():
    batch = make_batch(group=[0] * 4, reward=[1.0, 1.0, 1.0, 0.0], length=[2, 4, 6, 9])
    r = ShortCorrectReward(length_coef=0.05, eps=0.0)(batch.reward, batch)
    # lengths 2, 4, 6 of the right ones: mean 4, deviation 2; the wrong one's 9 does not count
    assert r.tolist() == pytest.approx([exp(0.05), 1.0, exp(-0.05), -1.0])


def test_single_correct_or_equal_lengths_have_reward_one():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 1.0, 1.0], length=[3, 9, 2, 2])
    assert ShortCorrectReward(0.05)(batch.reward, batch).tolist() == [1, -1, 1, 1]


def test_advantage_is_weighted_by_logistic_of_difficulty():
    batch = make_batch(group=[0] * 4, reward=[1.0, 0.0, 0.0, 0.0])

    def w(p):
        return 0.4 + 1.1 / (1 + exp(10 * (p - 0.75)))

    A = DifficultyWeight()(batch.reward * 4 - 1, batch)  # 3, -1, -1, -1
    assert A.tolist() == pytest.approx([3 * w(0.25), *[-w(0.75)] * 3])
    # github.com/aeroplanepaper/GRPO-LEAD 577c63c, logistic_reweight
    assert w(0.25) == pytest.approx(1.492637863983287)
    assert A[1].item() == pytest.approx(-0.95)


def test_complete_advantage_pipeline():
    batch = make_batch(group=[0] * 3, reward=[1.0, 1.0, 0.0], length=[1, 3, 5])
    z = 1 / sqrt(2)  # lengths 1 and 3: mean 2, deviation sqrt(2)
    r = [exp(0.05 * z), exp(-0.05 * z), -1.0]
    m = sum(r) / 3
    s = sqrt(sum((x - m) ** 2 for x in r) / 2)
    right, wrong = (0.4 + 1.1 / (1 + exp(10 * (p - 0.75))) for p in (2 / 3, 1 / 3))
    expected = [(r[0] - m) / s * right, (r[1] - m) / s * right, (r[2] - m) / s * wrong]
    advantage = grpo_lead().advantage(batch.reward, batch)
    assert advantage.tolist() == pytest.approx(expected, rel=1e-5)


def test_advantage_is_zero_without_correct_answer():
    batch = make_batch(group=[0, 0, 1], reward=[0.0, 0.0, 1.0], length=[1, 9, 3])
    assert grpo_lead().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_defaults_match_paper():
    assert grpo_lead().loss == Clip(0.2, 0.2)
    assert grpo_lead().aggregation is token_mean
