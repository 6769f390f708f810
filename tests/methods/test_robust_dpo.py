"""Robust DPO: loss and gradient of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.robust_dpo import robust_dpo
from grupo.util.errors import ConfigError
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # e = 0.25: (0.75 l(0.6) - 0.25 l(-0.6)) / 0.5
    loss, gradient = loss_and_gradient(robust_dpo(0.1, 0.25), pair_batch([4.0, -2.0]))
    assert loss == pytest.approx(1.5 * log(1 + exp(-0.6)) - 0.5 * log(1 + exp(0.6)))
    pull = 0.1 * (1.5 / (1 + exp(0.6)) + 0.5 / (1 + exp(-0.6)))
    assert gradient == pytest.approx([-pull, pull])


def test_mean_over_flipped_pairs_is_the_loss_of_dpo():
    right, flipped = (
        loss_and_gradient(robust_dpo(0.1, 0.25), pair_batch(h))[0]
        for h in ([4.0, -2.0], [-2.0, 4.0])
    )
    assert 0.75 * right + 0.25 * flipped == pytest.approx(log(1 + exp(-0.6)))


def test_flip_rate_of_one_half_is_refused():
    with pytest.raises(ConfigError, match=r"flip_rate: 0.5. Allowed: 0 or more, below 0.5."):
        robust_dpo(flip_rate=0.5)
