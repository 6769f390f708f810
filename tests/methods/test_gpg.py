import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.methods.gpg import gpg
from grupo.testing.batches import make_batch, perturb_logp


def test_advantages_are_rescaled_for_uninformative_groups():
    reward = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    batch = make_batch(group=[0, 0, 1, 1, 2, 2], reward=reward)
    # 4 of 6 rollouts are of groups all right or all wrong: alpha = 6 / 2
    assert gpg().advantage(batch.reward, batch).tolist() == [1.5, -1.5, 0, 0, 0, 0]


def test_scale_counts_informative_groups_instead_of_nonzero_rewards():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, -1.0, -1.0, -1.0])
    # no reward is 0, yet half of the groups are uninformative: alpha = 2, and A = 2 (+-1)
    assert gpg().advantage(batch.reward, batch).tolist() == [2, -2, 0, 0]


def test_scale_is_one_when_all_groups_are_informative():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 1.0])
    assert gpg().advantage(batch.reward, batch).tolist() == [0.5, -0.5, 1, -1]


def test_rounding_error_does_not_make_group_informative():
    batch = make_batch(group=[0] * 3 + [1] * 2, reward=[0.1] * 3 + [1.0, 0.0])
    assert gpg().advantage(batch.reward, batch).tolist() == [0, 0, 0, 1.25, -1.25]  # 5 / 2


def test_all_zero_rewards_have_zero_advantage():
    batch = make_batch(group=[0, 1, 1], reward=[7.0, 1.0, 1.0])
    assert gpg().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_mean_gradient_is_independent_of_uninformative_groups():
    def gradient(group, reward):
        batch = make_batch(group=group, reward=reward).with_advantage(gpg().advantage)
        pi = perturb_logp(batch, [[0.1]] * len(group))
        loss = (gpg().aggregation(batch) * gpg().loss(pi, batch)).sum()
        return torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()

    informative_only = gradient([0, 0], [1.0, 0.0])
    with_uninformative = gradient([0, 0, 1, 1, 2, 2], [1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    assert informative_only == [-0.25, 0.25]  # -A / 2
    assert with_uninformative[:2] == pytest.approx(informative_only)


def test_defaults_match_paper():
    assert gpg().loss == Reinforce()
    assert gpg().aggregation is token_mean
    assert gpg().requires.all_signals == frozenset()
