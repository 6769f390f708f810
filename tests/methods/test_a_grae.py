"""A-GRAE's advantages by difficulty and sign, computed by hand."""

from math import sqrt

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.a_grae import DifficultyWeightedAdvantage, a_grae
from grupo.testing.batches import make_batch


def test_advantages_depend_on_difficulty_and_sign():
    # p = 3/4 and 1/4, and eight groups that bring the mean to m = 0.4
    fill = [[1, 0], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0], [0, 0], [0, 0]]
    rewards = [1, 1, 1, 0, 1, 0, 0, 0, *(r for pair in fill for r in pair)]
    labels = [0] * 4 + [1] * 4 + [2 + i // 2 for i in range(16)]
    batch = make_batch(group=labels, reward=rewards)
    A = DifficultyWeightedAdvantage(target_accuracy=1.0, eps=0.0)
    m = (0.75 + 0.25 + 6 * 0.5) / 10
    assert m == 0.4
    root = sqrt(0.75)
    easy = 0.5 * (0.6 / (1 - root) + 0.4 / root)
    # r - p is 1/4 or -3/4, std 1/2
    expected = [0.5 * easy * 0.4] * 3 + [-1.5 * easy]
    assert expected == pytest.approx([0.49403] * 3 + [-3.70526], rel=1e-5)
    advantage = A(batch.reward[:8], make_batch(group=labels[:8], reward=rewards[:8]))
    assert advantage[:4].tolist() != pytest.approx(expected)  # alone these two have m = 1/2
    whole = DifficultyWeightedAdvantage(target_accuracy=1.0)(batch.reward, batch)
    assert whole[:4].tolist() == pytest.approx(expected, rel=1e-4)
    # sqrt p = 1/2: both weights are 1
    assert whole[4:8].tolist() == pytest.approx([1.5 * 0.4, -0.5, -0.5, -0.5], rel=1e-4)


def test_target_accuracy_lets_success_count_in_full_earlier():
    batch = make_batch(group=[0, 0, 0, 0], reward=[1, 0, 0, 0])  # m = 1/4
    one, half = (DifficultyWeightedAdvantage(alpha)(batch.reward, batch) for alpha in (1.0, 0.5))
    assert one[0].item() == pytest.approx(1.5 / 4, rel=1e-4)
    assert half[0].item() == pytest.approx(1.5 / 2, rel=1e-4)
    assert one[1:].tolist() == pytest.approx([-0.5] * 3, rel=1e-4)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_groups_of_equal_rewards_have_advantage_0(reward):
    batch = make_batch(group=[0, 0, 1], reward=[reward] * 3)
    assert a_grae().advantage(batch.reward, batch).tolist() == [0.0] * 3


def test_the_default_is_that_of_mathematics():
    assert a_grae().advantage.target_accuracy == 1.0


def test_update_plan_is_the_released_one():
    assert a_grae().updates == Updates(minibatches=4)
