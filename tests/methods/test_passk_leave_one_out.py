from itertools import product

import pytest
import torch

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.methods.passk_leave_one_out import passk_leave_one_out
from grupo.testing.batches import make_batch


def advantages(reward, group=None):
    batch = make_batch(group=group or [0] * len(reward), reward=reward)
    return passk_leave_one_out().advantage(batch.reward, batch).tolist()


def test_best_rollout_has_margin_over_second_best():
    assert advantages([0.25, 1.0, 0.75]) == [0, 0.25, 0]
    assert advantages([1.0, 0.0, 0.0]) == [1, 0, 0]
    assert advantages([-3.0, -1.0, -2.0]) == [0, 1, 0]


def test_tied_best_rollouts_have_zero_advantage():
    assert advantages([1.0, 1.0, 0.0]) == [0, 0, 0]
    assert advantages([0.0, 0.0]) == [0, 0]


def test_single_rollout_has_zero_advantage_and_groups_are_independent():
    assert advantages([7.0, 1.0, 0.5], group=[0, 1, 1]) == [0, 0.5, 0]


def test_expectation_is_gradient_of_pass_at_k():
    n, p = 3, 0.2  # a success has score 1 / p, a failure -1 / (1 - p)
    expected = 0.0
    for reward in product([0.0, 1.0], repeat=n):
        A = torch.tensor(advantages(list(reward)))
        score = torch.tensor([1 / p if r else -1 / (1 - p) for r in reward])
        chance = p ** sum(reward) * (1 - p) ** (n - sum(reward))
        expected += chance * (A * score).sum().item()
    assert expected == pytest.approx(n * (1 - p) ** (n - 1))  # d/dp of 1 - (1 - p)^n


def test_default_hyperparameters():
    assert passk_leave_one_out().loss == Reinforce()
    assert passk_leave_one_out().aggregation is token_sum


def test_advantage_over_std_matches_the_default_of_verl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_grpo_passk_outcome_advantage;
    # by default it divides by the group's deviation, which the paper does not
    reward, group = [0.25, 1.0, 0.75, 3.0, 1.0, 1.0, 1.0], [0, 0, 0, 1, 1, 2, 2]
    default = [0.0, 0.6546519564, 0.0, 1.4142125624, 0.0, 0.0, 0.0]
    std = group_ops.std(torch.tensor(reward), torch.tensor(group))
    actual = torch.tensor(advantages(reward, group)) / (std + 1e-6)
    assert actual.tolist() == pytest.approx(default, rel=1e-5)
