"""COPO's entropy of answers, advantage between groups and blended loss, computed by hand."""

from math import exp, sqrt

import pytest
import torch

from grupo.methods.copo import answer_entropy, between_group_advantage, copo
from grupo.testing.batches import make_batch, perturb_logp

THREE = make_batch(
    group=[0] * 4 + [1] * 4 + [2] * 4,
    reward=[1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    reward_terms={"cluster": [0, 1, 2, 0, 5, 5, 5, 5, 7, 7, 7, 7]},
)


def test_answer_entropy_is_in_bits_per_group():
    # shares 1/2, 1/4, 1/4: 1/2 + 1/2 + 1/2
    assert answer_entropy(THREE).tolist() == pytest.approx([1.5] * 4 + [0] * 8)


def test_between_group_advantage_compares_groups():
    # 1/2 (1 - 3/4 x 1.5 / 2) = 0.21875, 1 and 0; mean 0.40625
    std = sqrt((0.1875**2 + 0.59375**2 + 0.40625**2) / 2)
    assert std == pytest.approx(0.52571, abs=1e-5)
    A = between_group_advantage(THREE.reward, THREE)[[0, 4, 8]]
    assert A.tolist() == pytest.approx(
        [-0.1875 / (std + 1e-6), 0.59375 / (std + 1e-6), -0.40625 / (std + 1e-6)]
    )


def test_single_group_has_between_group_advantage_0():
    batch = make_batch(group=[0, 0], reward=[1, 0], reward_terms={"cluster": [0, 1]})
    assert between_group_advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_answer_entropy_mixes_the_two_losses():
    method = copo()
    batch = THREE.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1]] * 12)
    loss = method.loss(pi, batch)
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    w, r = 1 / (1 + exp(-1.0)), exp(0.1)  # sigmoid(1.5 - 0.5)
    assert w == pytest.approx(0.7311, abs=1e-4)
    G = between_group_advantage(THREE.reward, THREE)
    L = batch.advantage[:, 0]
    expected = [-r * (w * L[0] + (1 - w) * G[0]), -r * (w * L[1] + (1 - w) * G[1])]
    assert loss[:2, 0].tolist() == pytest.approx([float(x) for x in expected])
    assert gradient[:2, 0].tolist() == pytest.approx([float(x) for x in expected])
    # where everyone is right, GRPO is silent and the group speaks
    assert L[4] == 0
    assert gradient[4, 0].item() == pytest.approx(-r * G[4].item())


def test_each_loss_is_clipped_by_its_own_advantage():
    method = copo(entropy_slope=0.0)  # both count half
    batch = THREE.with_advantage(method.advantage)
    loss = method.loss(perturb_logp(batch, [[0.3]] * 12), batch)[0, 0]
    L, G = batch.advantage[0, 0], between_group_advantage(THREE.reward, THREE)[0]
    assert L > 0 > G
    assert loss.item() == pytest.approx(float(-0.5 * 1.2 * L - 0.5 * exp(0.3) * G))


def test_defaults_are_the_authors():
    loss = copo().loss
    assert (
        loss.entropy_slope,
        loss.entropy_midpoint,
        loss.surrogate.clip_low,
        loss.surrogate.clip_high,
    ) == (1.0, 0.5, 0.2, 0.2)
