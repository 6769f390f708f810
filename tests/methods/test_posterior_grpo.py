"""Posterior-GRPO: hand-computed thinking rewards."""

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.posterior_grpo import PosteriorReward, posterior_grpo
from grupo.testing.batches import make_batch


def graded_batch(format, correct, thinking):
    parts = {"format": format, "correct": correct, "thinking": thinking}
    return make_batch(group=[0] * len(format), reward_terms=parts)


def test_thinking_reward_requires_success():
    batch = graded_batch([1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.7, 0.9, 0.5])
    assert PosteriorReward()(batch.reward, batch).tolist() == pytest.approx([2.7, 1.0, 1.5])


def test_thinking_reward_distinguishes_correct_rollouts():
    batch = graded_batch([1.0] * 4, [1.0] * 4, [0.2, 0.4, 0.6, 0.8])
    advantage = batch.with_advantage(posterior_grpo().advantage).advantage[:, 0].tolist()
    std = ((0.09 + 0.01 + 0.01 + 0.09) / 3) ** 0.5
    assert advantage == pytest.approx([d / std for d in (-0.3, -0.1, 0.1, 0.3)], rel=1e-5)


def test_judge_score_does_not_raise_wrong_rollouts():
    plain = graded_batch([1.0] * 3, [1.0, 0.0, 0.0], [0.5, 0.0, 0.0])
    padded = graded_batch([1.0] * 3, [1.0, 0.0, 0.0], [0.5, 1.0, 0.0])
    estimator = posterior_grpo().advantage
    assert (
        plain.with_advantage(estimator).advantage.tolist()
        == padded.with_advantage(estimator).advantage.tolist()
    )


def test_default_hyperparameters():
    method = posterior_grpo()
    assert method.loss == Clip(0.2, 0.28)
    assert method.aggregation is token_mean
