"""cDPO: loss and gradient of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.cdpo import cdpo
from grupo.methods.dpo import dpo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # z = 0.6, e = 0.25: 0.75 l(0.6) + 0.25 l(-0.6)
    loss, gradient = loss_and_gradient(cdpo(0.1, 0.25), pair_batch([4.0, -2.0]))
    assert loss == pytest.approx(0.75 * log(1 + exp(-0.6)) + 0.25 * log(1 + exp(0.6)))
    pull = 0.1 * (0.75 / (1 + exp(0.6)) - 0.25 / (1 + exp(-0.6)))
    assert gradient == pytest.approx([-pull, pull])


def test_gradient_is_0_where_the_preference_is_as_sure_as_the_labels():
    # sigmoid(beta z) = 0.75 at z = log(3) / beta
    _, gradient = loss_and_gradient(cdpo(0.1, 0.25), pair_batch([10 * log(3), 0.0]))
    assert gradient == pytest.approx([0.0, 0.0], abs=1e-12)


def test_without_smoothing_it_is_dpo():
    assert cdpo(0.1, 0.0) == dpo(0.1)
