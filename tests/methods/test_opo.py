import pytest
import torch

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.algo.minibatches import SingleUpdate
from grupo.methods.opo import opo
from grupo.testing.batches import make_batch, perturb_logp


def test_baseline_is_length_weighted_mean_reward():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.5], length=[1, 2, 5])
    b = (1 * 1 + 2 * 0 + 5 * 0.5) / 8
    assert opo().advantage(batch.reward, batch).tolist() == [1 - b, -b, 0.5 - b]


def test_equal_lengths_have_mean_baseline():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 1.0], length=[2, 2, 1, 1])
    assert opo().advantage(batch.reward, batch).tolist() == [0.5, -0.5, 1.0, -1.0]


def test_baseline_minimizes_gradient_variance():
    # squared norm of an answer's score = its length: the variance of (r - b) score is then
    # sum_j l_j (r_j - b)^2, least at the weighted mean
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.5], length=[1, 2, 5])
    b = (batch.reward - opo().advantage(batch.reward, batch))[0].item()

    def variance(b):
        return (batch.lengths * (batch.reward - b) ** 2).sum().item()

    assert variance(b) < min(variance(b - 0.01), variance(b + 0.01), variance(0.5))


def test_advantage_is_zero_for_equal_rewards_or_single_rollout():
    batch = make_batch(group=[0, 1, 1], reward=[7.0, 1.0, 1.0], length=[3, 1, 2])
    assert opo().advantage(batch.reward, batch).tolist() == pytest.approx([0.0, 0.0, 0.0])


def test_gradient_is_advantage_over_rollout_count_at_every_token():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 3]).with_advantage(
        opo().advantage
    )
    pi = perturb_logp(batch, [[0.1, 0.0, 0.0], [0.2, 0.3, 0.4]])
    loss = (opo().aggregation(batch) * opo().loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.tolist() == [[-0.75 / 2, 0.0, 0.0], [0.25 / 2] * 3]  # b = 1/4


def test_updates_are_exactly_on_policy():
    assert (opo().updates, opo().loss) == (SingleUpdate(), Reinforce())
    assert opo().aggregation is token_sum
