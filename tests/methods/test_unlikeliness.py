"""Unlikeliness reward: hand-computed values."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.unlikeliness import UnlikelinessReward, unlikeliness
from grupo.testing.batches import make_batch, perturb_logp


def rewarded_batch(reward, logp, length=None):
    batch = make_batch(group=[0] * len(reward), reward=reward, length=length)
    return replace(batch, old_logp=torch.tensor(logp, dtype=torch.float64))


def test_reward_of_correct_rollout_decreases_with_likelihood():
    batch = rewarded_batch([1, 1, 0, 0], [[-0.1], [-1.0], [-0.5], [-2.0]])
    # ranks 3, 1, 2, 0 of 4
    r = UnlikelinessReward(0.25)(batch.reward, batch)
    assert r.tolist() == pytest.approx([1 - 0.25 * 3 / 4, 1 - 0.25 / 4, 0, 0])


def test_all_correct_group_has_nonzero_advantage():
    batch = rewarded_batch([1, 1], [[-0.1], [-1.0]])
    A = unlikeliness().advantage(batch.reward, batch)
    # rewards 7/8 and 1: half of 1/8 over 1/8 sqrt(1/2)
    assert A.tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5], rel=1e-4)


def test_likelihood_is_mean_over_actions():
    batch = rewarded_batch([1, 1], [[-0.4, -0.4], [-0.5, 99.0]], length=[2, 1])
    assert UnlikelinessReward(0.5)(batch.reward, batch).tolist() == pytest.approx([1 - 0.25, 1.0])


def test_equal_likelihoods_have_equal_rewards():
    batch = rewarded_batch([1, 1, 1], [[-1.0], [-1.0], [-2.0]])
    r = UnlikelinessReward(0.3)(batch.reward, batch)
    assert r.tolist() == pytest.approx([1 - 0.3 * 1.5 / 3] * 2 + [1.0])


def test_loss_is_mean_over_all_tokens():
    batch = make_batch(group=[0, 0], length=[1, 3], advantage=[1.0, -1.0])
    weight = unlikeliness().aggregation(batch)
    assert weight.tolist() == [[0.25, 0.0, 0.0], [0.25] * 3]  # of 1 + 3 tokens
    loss = (weight * unlikeliness().loss(perturb_logp(batch, [[0.0] * 3] * 2), batch)).sum()
    assert loss.item() == pytest.approx((-1 + 3) / 4)  # R is 1 and k3 is 0


def test_defaults_match_paper():
    method = unlikeliness()
    assert method.sampler.group_size == 32
    assert method.advantage.estimators[0] == UnlikelinessReward(0.25)
    assert method.loss.right.factor == 0.1
    assert method.updates == Updates(epochs=2)
