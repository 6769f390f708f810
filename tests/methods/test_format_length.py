"""Format-length: hand-computed rewards at 25, 50, 75 and 100 percent of the budget."""

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.methods.format_length import FormatLengthReward, format_length
from grupo.testing.batches import make_batch


def rewards(format, length=(1, 2, 3, 4), peak=0.5):
    batch = make_batch(group=[0] * 4, length=list(length), reward_terms={"format": format})
    return FormatLengthReward(max_length=4, peak_fraction=peak)(batch.reward, batch).tolist()


def test_length_reward_peaks_at_peak_length():
    # l = 1 - (1/2)^2, 1, 1 - 2 (1/2)^2, 1 - 2; f = 1
    assert rewards([1.0] * 4) == [1.75, 2.0, 1.5, 0.0]


def test_missing_format_removes_positive_length_reward():
    assert rewards([0.0] * 4) == [0.0, 0.0, 0.0, -1.0]


def test_length_penalty_saturates_beyond_budget():
    assert rewards([1.0] * 4, length=(4, 5, 6, 9)) == [0.0] * 4


def test_peak_at_budget_gives_nondecreasing_reward():
    assert rewards([1.0] * 4, peak=1.0) == [1 + 1 - 0.75**2, 1.75, 2 - 0.25**2, 2.0]


def test_reward_does_not_read_answer():
    right, wrong = (
        make_batch(group=[0, 0], reward=r, length=[1, 2], reward_terms={"format": [1.0, 0.0]})
        for r in ([1.0, 0.0], [0.0, 1.0])
    )
    estimator = format_length(max_length=4).advantage
    assert torch.equal(
        right.with_advantage(estimator).advantage, wrong.with_advantage(estimator).advantage
    )


def test_advantage_is_centred_and_scaled():
    batch = make_batch(group=[0, 0], length=[2, 4], reward_terms={"format": [1.0, 1.0]})
    A = batch.with_advantage(format_length(max_length=4).advantage).advantage
    assert A[:, 0].tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)  # rewards 2 and 0


def test_defaults_match_paper():
    assert format_length().loss == Clip() + 0.001 * KL()
    assert format_length(kl_coef=0.0).requires.all_signals == frozenset()
