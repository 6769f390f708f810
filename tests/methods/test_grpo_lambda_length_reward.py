"""GRPO-lambda: selection of groups for the length reward and its values."""

from math import exp

import pytest

from grupo.methods.grpo_lambda_length_reward import (
    LengthRewardWhereSolved,
)
from grupo.testing.batches import make_batch


def sigmoid(z):
    return 1 / (1 + exp(-z))


def shaped_rewards(group, correct, length, fraction=1.0, weight=0.2):
    batch = make_batch(group=group, length=length, reward_terms={"correct": correct})
    return LengthRewardWhereSolved(fraction, weight)(batch.reward, batch).tolist()


def test_correct_rollout_is_rewarded_for_relative_brevity():
    r = shaped_rewards([0, 0, 0], [1.0, 1.0, 0.0], [1, 3, 9])
    # mean 2, std sqrt((1 + 1) / 2) = 1 over the two: z = -1, 1; the wrong one is not in them
    assert r == pytest.approx([1 - 0.2 * sigmoid(-1), 1 - 0.2 * sigmoid(1), 0.0])
    assert r == pytest.approx([0.9462, 0.8538, 0.0], abs=1e-4)


def test_length_reward_applies_to_most_accurate_groups_only():
    group = [g for g in range(5) for _ in range(5)]
    correct = [1.0 if i < 5 - g else 0.0 for g in range(5) for i in range(5)]  # 1, .8, .6, .4, .2
    r = shaped_rewards(group, correct, [1, 2, 3, 4, 5] * 5, fraction=0.2)
    assert all(0.8 < x < 1.0 for x in r[:5])
    assert r[5:] == correct[5:]


def test_groups_with_equal_accuracy_are_selected_together():
    r = shaped_rewards(
        [0, 0, 1, 1, 2, 2], [1.0] * 4 + [1.0, 0.0], [1, 3] * 3, fraction=0.2
    )  # 1 of 3
    assert r[:2] == r[2:4] == pytest.approx([1 - 0.2 * sigmoid(-1), 1 - 0.2 * sigmoid(1)])
    assert r[4:] == [1.0, 0.0]


def test_ranking_ignores_group_size():
    r = shaped_rewards(
        [0, 1, 1, 1], [1.0, 1.0, 1.0, 0.0], [5, 1, 3, 3], fraction=0.5
    )  # 1 of 2 groups
    assert r == pytest.approx([0.9, 1.0, 1.0, 0.0])


def test_single_correct_rollout_has_mean_length():
    assert shaped_rewards([0, 0], [1.0, 0.0], [4, 9]) == pytest.approx(
        [0.9, 0.0]
    )  # sigmoid(0) = 1/2


def test_group_without_success_has_zero_reward():
    assert shaped_rewards([0, 0], [0.0, 0.0], [4, 9]) == [0.0, 0.0]
