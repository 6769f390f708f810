"""AutoThink: a batch in which most think, one in which few do, and the length term."""

from math import exp

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.autothink import BalancedModeReward, autothink
from grupo.testing.batches import make_batch


def rewards(correct, think, length=None, group=None, format=None, rate=0.5, shape=0.0):
    n = len(correct)
    parts = {"correct": correct, "think": think, "format": format or [1.0] * n}
    batch = make_batch(group=group or [0] * n, length=length, reward_terms=parts)
    return BalancedModeReward(rate, shape)(batch.reward, batch).tolist()


def test_balanced_batch_rewards_and_risks_more_without_thinking():
    assert rewards([1, 0, 1, 0], [1, 1, 0, 0]) == [1.0, 0.0, 2.0, -1.0]


def test_reward_of_thinking_falls_if_most_rollouts_think():
    # share 3/4: d = 2 (3/4 - 1/2) = 1/2
    assert rewards([1, 0, 1, 1], [1, 1, 1, 0]) == [0.5, -0.5, 0.5, 2.0]


def test_reward_without_thinking_falls_if_few_rollouts_think():
    assert rewards([1, 0, 1, 1], [0, 0, 0, 1]) == [1.5, -1.5, 1.5, 1.0]


def test_balance_is_computed_over_the_batch():
    alone = rewards([1, 0], [1, 1], rate=0.5)
    balanced = rewards([1, 0, 1, 0], [1, 1, 0, 0], group=[0, 0, 1, 1])
    assert alone == [0.0, -1.0]  # all think: d = 1
    assert balanced[:2] == [1.0, 0.0]


def test_last_stage_rewards_short_correct_and_long_incorrect_answers():
    z = 0.5**0.5  # lengths 1 and 3: mean 2, std sqrt(2)
    r = rewards([1, 1, 0, 0, 1], [0, 0, 1, 1, 1], [1, 3, 1, 3, 2], [0, 0, 0, 0, 1], None, 1.0, 0.05)
    assert r[:2] == pytest.approx([1 + exp(0.05 * z), 1 + exp(-0.05 * z)])
    assert r[2:4] == pytest.approx([1 - exp(0.05 * z), 1 - exp(-0.05 * z)])
    assert r == pytest.approx([2.0360, 1.9653, -0.0360, 0.0347, 1.0], abs=1e-4)  # alone: unshaped


def test_malformed_answers_have_reward_0():
    assert rewards([1, 1, 1, 1], [1, 1, 0, 0], format=[1, 0, 1, 0]) == [1.0, 0.0, 2.0, 0.0]


def test_update_plan_is_the_released_one():
    assert autothink().updates == Updates(minibatches=2)
