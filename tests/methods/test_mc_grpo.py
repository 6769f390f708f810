from math import exp

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.mc_grpo import mc_grpo, sequence_mean_without_pivots
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


def test_pivot_rollout_is_dropped_from_loss():
    batch = make_batch(group=[0] * 3 + [1] * 3, length=[1, 2, 1, 1, 1, 1])
    weight = sequence_mean_without_pivots(batch)
    assert weight[1].tolist() == [0.125, 0.125]  # 4 rollouts left, 2 tokens
    assert weight[batch.mask].sum().item() == pytest.approx(6 / 4)  # 2 of them have zero advantage


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
    assert sequence_mean_without_pivots(make_batch(group=[0])).isfinite().all()


def test_default_hyperparameters():
    assert (mc_grpo().sampler, mc_grpo().loss) == (GroupSampler(9), Clip(0.2, 0.2) + 0.04 * KL())
    assert mc_grpo().updates == Updates(epochs=2)
