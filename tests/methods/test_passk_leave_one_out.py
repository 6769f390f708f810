from itertools import product

import pytest
import torch

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.methods.passk_leave_one_out import passk_leave_one_out
from grupo.testing.batches import make_batch


def credit(reward, group=None):
    batch = make_batch(group=group or [0] * len(reward), reward=reward)
    return passk_leave_one_out().advantage(batch.reward, batch).tolist()


def test_the_best_is_credited_with_what_it_adds_to_the_second_best():
    assert credit([0.25, 1.0, 0.75]) == [0, 0.25, 0]
    assert credit([1.0, 0.0, 0.0]) == [1, 0, 0]
    assert credit([-3.0, -1.0, -2.0]) == [0, 1, 0]


def test_two_equally_good_ones_get_nothing():
    assert credit([1.0, 1.0, 0.0]) == [0, 0, 0]
    assert credit([0.0, 0.0]) == [0, 0]


def test_a_lone_rollout_gets_nothing_and_groups_are_apart():
    assert credit([7.0, 1.0, 0.5], group=[0, 1, 1]) == [0, 0.5, 0]


def test_its_expectation_is_the_gradient_of_pass_at_k():
    n, p = 3, 0.2  # a success has score 1 / p, a failure -1 / (1 - p)
    expected = 0.0
    for reward in product([0.0, 1.0], repeat=n):
        A = torch.tensor(credit(list(reward)))
        score = torch.tensor([1 / p if r else -1 / (1 - p) for r in reward])
        chance = p ** sum(reward) * (1 - p) ** (n - sum(reward))
        expected += chance * (A * score).sum().item()
    assert expected == pytest.approx(n * (1 - p) ** (n - 1))  # d/dp of 1 - (1 - p)^n


def test_the_defaults():
    assert passk_leave_one_out().loss == Reinforce()
    assert passk_leave_one_out().aggregation is token_sum


def test_matches_verl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_grpo_passk_outcome_advantage
    # with norm_adv_by_std_in_grpo=False; by default it divides by the group's deviation, which the
    # paper does not, and a group of one is an error there
    reward, group = [0.25, 1.0, 0.75, 3.0, 1.0, 1.0, 1.0], [0, 0, 0, 1, 1, 2, 2]
    assert credit(reward, group) == pytest.approx([0.0, 0.25, 0.0, 2.0, 0.0, 0.0, 0.0])
    default = [0.0, 0.6546519564, 0.0, 1.4142125624, 0.0, 0.0, 0.0]
    std = group_ops.std(torch.tensor(reward), torch.tensor(group))
    ours = torch.tensor(credit(reward, group)) / (std + 1e-6)
    assert ours.tolist() == pytest.approx(default, rel=1e-5)
