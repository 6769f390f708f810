from math import exp

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.mc_grpo import mc_grpo, mean_of_other_rows
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_advantage_uses_median_and_median_absolute_deviation():
    batch = make_batch(group=[0] * 3, reward=[0.2, 0.9, 0.5])
    # median 0.5, deviations 0.3, 0.4 and 0: their median is 0.3
    A = mc_grpo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([-0.3 / 0.301, 0.4 / 0.301, 0.0])
    assert A.tolist() == pytest.approx([-0.9967, 1.3289, 0.0], abs=1e-4)


def test_single_success_has_advantage_one_over_eps():
    batch = make_batch(group=[0] * 3, reward=[1.0, 0.0, 0.0])
    assert mc_grpo().advantage(batch.reward, batch).tolist() == pytest.approx([1000, 0, 0])
    assert mc_grpo(eps=1.0).advantage(batch.reward, batch).tolist() == [1, 0, 0]


def test_outlier_reward_does_not_flip_signs():
    batch = make_batch(group=[0] * 5, reward=[0.4, 0.5, 0.6, 0.7, 9.0])
    A = mc_grpo().advantage(batch.reward, batch)
    assert [x > 0 for x in A.tolist()] == [False, False, False, True, True]
    assert (batch.reward - batch.reward.mean() > 0).tolist() == [False] * 4 + [True]


def test_rows_of_pivots_weigh_nothing():
    rewards = [0.9, 0.2, 0.5, 0.0, 1.0, 0.3]  # the medians are those of rows 2 and 5
    batch = make_batch(group=[0] * 3 + [1] * 3, reward=rewards, length=[1, 2, 1, 1, 1, 1])
    weight = mean_of_other_rows(batch)
    # 4 rollouts are left, and the second has 2 tokens
    assert weight.tolist() == [[0.25, 0], [0.125, 0.125], [0, 0], [0.25, 0], [0.25, 0], [0, 0]]


def test_rollouts_with_the_median_reward_share_the_place_of_one_pivot():
    batch = make_batch(group=[0] * 5, reward=[1.0, 0.0, 0.0, 0.0, 1.0])
    weight = mean_of_other_rows(batch).flatten().tolist()
    # 4 rollouts are left: 2/3 of each of the three zeros, and the ones
    assert weight == pytest.approx([1 / 4, 1 / 6, 1 / 6, 1 / 6, 1 / 4])


def test_pivot_has_no_gradient_of_the_kl():
    method = mc_grpo(kl_coef=0.5)
    ref = {"logp@ref": [[-2.0], [-2.0], [-2.0]]}
    batch = make_batch(group=[0] * 3, reward=[0.2, 0.9, 0.5], signals=ref)
    batch = batch.with_advantage(lambda x, _: 0 * x)
    pi = perturb_logp(batch, [[0.0]] * 3)  # -1: ref / pi = e^-1
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    # the slope of k3 is 1 - ref / pi, for the two other rollouts
    slope = 0.5 * (1 - exp(-1)) / 2
    assert gradient.flatten().tolist() == pytest.approx([slope, slope, 0])


def test_loss_and_gradient_match_batch_without_pivot():
    method = mc_grpo(kl_coef=0.0)
    batch = make_batch(group=[0] * 3, reward=[0.2, 0.9, 0.5]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1], [0.1], [0.1]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    low, high = 0.3 / 0.301, 0.4 / 0.301
    assert loss.item() == pytest.approx((low - high) * exp(0.1) / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx(
        [low * exp(0.1) / 2, -high * exp(0.1) / 2, 0]
    )


def test_advantage_is_zero_for_equal_rewards_or_single_rollout():
    batch = make_batch(group=[0, 0, 0, 1], reward=[1.0, 1.0, 1.0, 7.0])
    assert mc_grpo().advantage(batch.reward, batch).tolist() == [0, 0, 0, 0]
    assert mean_of_other_rows(make_batch(group=[0])).tolist() == [[0.0]]


def test_default_hyperparameters():
    assert (mc_grpo().sampler, mc_grpo().loss) == (GroupSampler(9), Clip(0.2, 0.2) + 0.04 * KL())
    assert mc_grpo().updates == Updates(epochs=2)
