from math import sqrt

import pytest

from grupo.methods.listener import ListenerReward, listener
from grupo.testing.batches import make_batch

PARTS = {
    "format": [1.0, 1.0, 1.0, 0.0],
    "correct": [1.0, 1.0, 0.0, 1.0],
    "listener": [0.9, 0.3, 0.9, 0.9],
}


def test_listener_probability_is_added_to_accuracy_reward():
    batch = make_batch(group=[0] * 4, reward_terms=PARTS)
    rewards = ListenerReward()(batch.reward, batch).tolist()
    assert rewards == pytest.approx([1 + 0.5 + 0.45, 1 + 0.5 + 0.15, 1 + 0.45, 0.0])


def test_low_listener_probability_can_give_zero_reward():
    batch = make_batch(group=[0] * 4, reward_terms=PARTS)
    rewards = ListenerReward(min_confidence=0.5)(batch.reward, batch).tolist()
    assert rewards == pytest.approx([1.95, 1.5, 1.45, 0.0])


def test_listener_distinguishes_two_correct_answers():
    parts = {name: x[:2] for name, x in PARTS.items()}
    batch = make_batch(group=[0, 0], reward_terms=parts)
    s = sqrt(2 * 0.15**2) + 1e-6  # 1.95 and 1.65 about 1.8
    assert listener().advantage(batch.reward, batch).tolist() == pytest.approx(
        [0.15 / s, -0.15 / s]
    )


def test_requires_three_reward_terms():
    assert listener().advantage.estimators[0] == ListenerReward(0.5, 0.5, 0.0)
    assert listener().advantage.estimators[0].requires.reward_terms == {
        "format",
        "correct",
        "listener",
    }
