from itertools import combinations
from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.passk_training import PassAtK, passk_training
from grupo.testing.batches import make_batch


def advantages(right, wrong, k, eps=1e-6):
    batch = make_batch(group=[0] * (right + wrong), reward=[1.0] * right + [0.0] * wrong)
    return PassAtK(k, eps)(batch.reward, batch).tolist()


def test_advantages_of_one_success_in_eight_at_pass_4():
    # R = 1 - C(7, 4) / C(8, 4) = 1 - 35/70, s = 1/2; C(6, 3) / C(7, 3) = 20/35
    actual = advantages(1, 7, k=4, eps=0.0)
    assert actual == pytest.approx([0.5 / 0.5, *[(0.5 - 20 / 35) / 0.5] * 7])


def test_advantage_is_mean_over_all_subsets_with_rollout():
    reward, k = [1.0, 1.0, 0.0, 0.0, 0.0], 3
    subsets = [set(s) for s in combinations(range(5), k)]
    subset_rewards = [max(reward[i] for i in s) for s in subsets]
    R = sum(subset_rewards) / len(subset_rewards)
    s = sqrt(R * (1 - R))
    expected = []
    for i in range(5):
        own_rewards = [r for subset, r in zip(subsets, subset_rewards, strict=True) if i in subset]
        expected.append((sum(own_rewards) / len(own_rewards) - R) / s)
    assert advantages(2, 3, k, eps=0.0) == pytest.approx(expected)


def test_k_one_reduces_to_grpo_with_population_std():
    assert advantages(2, 2, k=1, eps=0.0) == pytest.approx([1, 1, -1, -1])


def test_uniform_pass_at_k_groups_have_zero_advantage():
    assert advantages(5, 3, k=4) == [0] * 8  # 3 wrong ones never fill a subset of 4
    assert advantages(0, 8, k=4) == [0] * 8
    assert advantages(8, 0, k=4) == [0] * 8


def test_group_smaller_than_k_is_one_subset():
    assert advantages(1, 1, k=4) == [0, 0]  # its only pair passes
    assert advantages(1, 0, k=4) == [0]


def test_groups_are_independent():
    batch = make_batch(group=[0, 0, 0, 1, 1, 1], reward=[1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    A = PassAtK(2, eps=0.0)(batch.reward, batch).tolist()
    # R = 1 - C(2, 2) / C(3, 2) = 2/3, C(1, 1) / C(2, 1) = 1/2; one wrong of three never fails
    s = sqrt(2) / 3
    assert A[:3] == pytest.approx([1 / 3 / s, (1 / 3 - 1 / 2) / s, (1 / 3 - 1 / 2) / s])
    assert advantages(1, 2, k=2, eps=0.0) == A[:3]


def test_default_hyperparameters():
    method = passk_training()
    assert method.loss == Clip(0.2, 0.28)  # clip-higher and the token mean are what it keeps
    assert method.aggregation is token_mean
