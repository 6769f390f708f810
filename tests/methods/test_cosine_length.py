"""Cosine reward by length and outcome, and the repetition penalty."""

import pytest
import torch

from grupo.algo.advantages.reward_shaping import repeated_ngrams
from grupo.algo.minibatches import Updates
from grupo.methods.cosine_length import CosineLengthReward, cosine_length
from grupo.testing.batches import make_batch


def reward(length, correct, limit=64):
    n = len(length)
    batch = make_batch(group=[0] * n, length=length, reward_terms={"correct": [correct] * n})
    return CosineLengthReward(limit)(batch.reward, batch).tolist()


def test_reward_falls_with_length_if_correct_and_rises_if_incorrect():
    # at L / limit = 1/4 the cosine is sqrt(1/2), at 1/2 it is 0
    assert reward([16, 32], 1.0) == pytest.approx([1 + (1 + 0.5**0.5) / 2, 1.5])
    assert reward([16, 32], 0.0) == pytest.approx([-5 * (1 + 0.5**0.5), -5.0])


def test_overlong_answers_are_penalised_whatever_their_outcome():
    assert reward([47], 1.0)[0] > 1
    assert reward([48, 64, 70], 1.0) == reward([48, 64, 70], 0.0) == [-10.0] * 3  # 48 + 16 = 64


def test_advantage_adds_outcome_and_repetition():
    batch = make_batch(
        group=[0, 0],
        length=[3, 1],
        reward_terms={"correct": [1.0, 1.0]},
        signals={"step/repeated": [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]},
    )
    A = batch.with_advantage(cosine_length(max_length=64).advantage).advantage
    high = 0.5**0.5  # of two unequal rewards, the shorter is the better
    price = [-0.05 * (0.99 + 0.99**2), -0.05 * 1.99, -0.05]
    assert A[0].tolist() == pytest.approx([p - high for p in price], rel=1e-2)
    assert A[1].tolist() == pytest.approx([high, 0.0, 0.0], rel=1e-2)
    free = cosine_length(max_length=64, repetition_coef=0.0)
    plain = batch.with_advantage(free.advantage).advantage
    assert (A - plain)[0].tolist() == pytest.approx(price)
    assert torch.equal(A[1], plain[1])


def test_repetition_marks_match_the_authors_code():
    # eddycmu/demystify-long-cot @ e90cf9b, openrlhf/openrlhf/reward/repetition.py,
    # RepetitionDensePenalty.reward; 3-grams, penalty -0.05, not of starts only
    p = -0.05000000074505806
    recorded = {
        (1, 2, 3, 4, 1, 2, 3, 4, 5): [0.0, 0.0, 0.0, 0.0, p, p, p, p, 0.0],
        (7, 7, 7, 7, 7): [0.0, p, p, p, p],
        (1, 2, 3, 1, 2, 9): [0.0] * 6,
    }
    for tokens, expected in recorded.items():
        penalties = [-0.05 * mark for mark in repeated_ngrams(tokens, n=3)]
        assert penalties == pytest.approx(expected, rel=1e-5)


def test_defaults_are_the_papers():
    piece = CosineLengthReward(64)
    assert (piece.correct_rewards, piece.incorrect_rewards, piece.overlong_reward) == (
        (2.0, 1.0),
        (-10.0, 0.0),
        -10.0,
    )


def test_update_plan_is_the_released_one():
    assert cosine_length(max_length=64).updates == Updates(epochs=2, minibatches=16)
