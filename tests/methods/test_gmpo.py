from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.gmpo import GeometricClip, TopEntropyTokens, gmpo
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(batch, by):
    method, pi = gmpo(), perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad.flatten().tolist()


def test_tokens_are_clipped_one_sided_before_geometric_mean():
    batch = make_batch(group=[0, 0], length=[3, 3], advantage=[1.0, -2.0])
    loss, gradient = loss_and_gradient(batch, [[0.5, -0.1, -1.5], [-0.6, 0.3, 1.3]])
    good = exp((0.4 - 0.1 - 1.5) / 3)  # 0.5 is clipped to 0.4; -1.5 is not: A > 0
    bad = exp((-0.4 + 0.3 + 1.3) / 3)  # -0.6 is clipped to -0.4; 1.3 is not: A < 0
    assert loss == pytest.approx((-good + 2 * bad) / 2)
    assert gradient == pytest.approx(
        [0, -good / 6, -good / 6, 0, 2 * bad / 6, 2 * bad / 6]  # -A ratio / L / 2 unless clipped
    )


def test_zero_advantage_has_no_gradient_and_padding_is_ignored():
    batch = make_batch(group=[0, 0], length=[1, 2], advantage=[1.0, 0.0])
    batch = replace(batch, old_logp=torch.full((2, 2), -1.0, dtype=torch.float64))
    loss, gradient = loss_and_gradient(batch, [[0.2, 5.0], [0.3, 0.3]])
    assert loss == pytest.approx(-exp(0.2) / 2)
    assert gradient == pytest.approx([-exp(0.2) / 2, 0, 0, 0])


def test_defaults_match_reference_implementation():
    assert (gmpo().loss.clip_low, gmpo().loss.clip_high) == (0.4, 0.4)
    assert gmpo().updates == Updates(epochs=1, minibatches=8)


def test_mean_over_the_tokens_of_highest_entropy():
    entropy = {"entropy": [[0.1, 2.0, 3.0], [0.2, 0.3, 0.1]]}
    batch = make_batch(group=[0, 0], length=[3, 3], advantage=[1.0, 1.0], signals=entropy)
    loss = GeometricClip(tokens=TopEntropyTokens(1 / 3))
    values = loss(perturb_logp(batch, [[0.4, 0.1, 0.3], [0.2, 0.2, 0.2]]), batch)
    # the two highest of six are in the first row; the second row has none
    assert values.tolist() == [pytest.approx([-exp(0.2)] * 3), [-1.0] * 3]
