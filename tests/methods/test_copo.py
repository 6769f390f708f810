"""COPO's entropy of answers, advantage between groups and blended loss, computed by hand."""

from math import exp, sqrt

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.batch import Signals
from grupo.methods.copo import BetweenGroups, answer_entropy, copo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

THREE = make_batch(
    group=[0] * 4 + [1] * 4 + [2] * 4,
    reward=[1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    reward_terms={"cluster": [0, 1, 2, 0, 5, 5, 5, 5, 7, 7, 7, 7]},
)


def test_answer_entropy_is_in_bits_per_group():
    # shares 1/2, 1/4, 1/4: 1/2 + 1/2 + 1/2
    assert answer_entropy(THREE).tolist() == pytest.approx([1.5] * 4 + [0] * 8)


def test_between_group_advantage_compares_mean_rewards_of_groups():
    # means 1/2, 1 and 0; their mean is 1/2 and their standard deviation 1/2
    A = BetweenGroups()(THREE.reward, THREE)[[0, 4, 8]]
    assert A.tolist() == pytest.approx([0.0, 0.5 / (0.5 + 1e-6), -0.5 / (0.5 + 1e-6)])


def test_consistency_lowers_the_reward_of_groups_with_different_answers():
    # 1/2 (1 - 3/4 x 1.5 / 2) = 0.21875, 1 and 0; mean 0.40625
    std = sqrt((0.1875**2 + 0.59375**2 + 0.40625**2) / 2)
    assert std == pytest.approx(0.52571, abs=1e-5)
    A = BetweenGroups(1.0)(THREE.reward, THREE)[[0, 4, 8]]
    assert A.tolist() == pytest.approx(
        [-0.1875 / (std + 1e-6), 0.59375 / (std + 1e-6), -0.40625 / (std + 1e-6)]
    )


def test_single_group_has_between_group_advantage_0():
    batch = make_batch(group=[0, 0], reward=[1, 0], reward_terms={"cluster": [0, 1]})
    assert BetweenGroups()(batch.reward, batch).tolist() == [0.0, 0.0]


def test_rollouts_without_reward_learn_from_other_groups_alone():
    batch = make_batch(group=[0] * 4, reward=[1, 0, 0, 0], reward_terms={"cluster": [0, 1, 2, 3]})
    # H = 2 bits: sigmoid(5 (2 - 1)) = 0.9933
    weights = copo().loss.weight(batch)
    assert weights.tolist() == pytest.approx([1 / (1 + exp(-5.0)), 0.0, 0.0, 0.0])


def test_answer_entropy_mixes_the_two_losses():
    method = copo(consistency_coef=1.0)
    batch = THREE.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1]] * 12)
    loss = method.loss(pi, batch)
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    w, r = 1 / (1 + exp(-2.5)), exp(0.1)  # sigmoid(5 (1.5 - 1))
    G = batch.advantage[:, 0].tolist()
    L = 0.5 / (sqrt(1 / 3) + 1e-6)  # two of four are correct
    expected = [-r * (w * L + (1 - w) * G[0]), -r * G[1]]  # the second is incorrect
    assert loss[:2, 0].tolist() == pytest.approx(expected)
    assert gradient[:2, 0].tolist() == pytest.approx(expected)
    # all are correct: the loss within the group is 0, and w = sigmoid(5 (0 - 1))
    between = (1 - 1 / (1 + exp(5.0))) * G[4]
    assert gradient[4, 0].item() == pytest.approx(-r * between)


def test_each_loss_is_clipped_by_its_own_advantage():
    method = copo(entropy_slope=0.0, consistency_coef=1.0)  # both count half
    batch = THREE.with_advantage(method.advantage)
    loss = method.loss(perturb_logp(batch, [[0.3]] * 12), batch)[0, 0]
    L, G = 0.5 / (sqrt(1 / 3) + 1e-6), batch.advantage[0, 0].item()
    assert L > 0 > G
    assert loss.item() == pytest.approx(-0.5 * 1.2 * L - 0.5 * exp(0.3) * G)


def test_minibatches_keep_the_advantage_between_the_groups_of_the_whole_batch():
    method = copo()
    batch = THREE.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1]] * 12)
    whole = method.loss(pi, batch)
    rows = torch.arange(4, 8)
    part = method.loss(pi_of_rows(pi, rows), batch.select_rows(rows))
    assert part[:, 0].tolist() == pytest.approx(whole[rows, 0].tolist())
    assert part[0, 0].item() < -0.9  # correct groups gain


def pi_of_rows(pi, rows):
    return Signals(logp=pi.logp[rows])


def test_defaults_are_those_of_the_authors_readme_and_script():
    loss = copo().loss
    assert (loss.entropy_slope, loss.entropy_midpoint) == (5.0, 1.0)
    assert copo().advantage == BetweenGroups(0.0)
    assert (loss.surrogate.clip_low, loss.surrogate.clip_high) == (0.2, 0.2)
    assert copo().updates == Updates(minibatches=16)
    assert copo().sampler == GroupSampler(6)
