"""GroCo: the sorting network, loss and gradient of a group."""

from math import log, pi

import pytest
import torch

from grupo.algo.losses.listwise import soft_permutation
from grupo.methods.groco import groco
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # a difference of 1: P(in order) = 1/2 + atan(1) / pi = 3/4, slope 1 / (2 pi)
    loss, gradient = loss_and_gradient(groco(), pair_batch([0.0, 0.0]), change=[1.0, 0.0])
    assert loss == pytest.approx(-log(0.75))
    slope = 1 / (2 * pi) / 0.75
    assert gradient == pytest.approx([-slope, slope])


def test_answers_of_equal_reward_share_their_places():
    batch = pair_batch([0.0] * 2, reward=(1.0, 1.0))
    loss, gradient = loss_and_gradient(groco(), batch, change=[1.0, 0.0])
    assert (loss, gradient) == (pytest.approx(0.0, abs=1e-12), pytest.approx([0.0, 0.0], abs=1e-12))


def test_mean_log_likelihoods_are_sorted():
    loss, _ = loss_and_gradient(groco(), pair_batch([0.0] * 2, length=(1, 9)))
    assert loss == pytest.approx(log(2))


def test_network_is_doubly_stochastic():
    x = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    permutation = soft_permutation(x, 3.0)
    for total in (permutation.sum(0), permutation.sum(1)):
        assert total.tolist() == pytest.approx([1.0] * 7, abs=1e-12)


def test_steep_network_sorts():
    x = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    permutation = soft_permutation(x, 1e9)
    assert permutation.argmax(1).tolist() == x.argsort(descending=True).tolist()
    assert permutation.max(1).values.min() > 1 - 1e-6
