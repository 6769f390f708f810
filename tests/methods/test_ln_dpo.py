"""LN-DPO: loss and gradient of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.dpo import dpo
from grupo.methods.ln_dpo import ln_dpo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # 2 (4 / 8 + 2 / 4) = 2: -log sigmoid(2) = 0.1269
    loss, gradient = loss_and_gradient(ln_dpo(beta=2.0), pair_batch([4.0, -2.0], length=(8, 4)))
    assert loss == pytest.approx(log(1 + exp(-2.0)))
    pull = 2 / (1 + exp(2.0))
    assert gradient == pytest.approx([-pull / 8, pull / 4])


def test_length_has_no_influence_at_an_equal_ratio_per_token():
    short, long = (
        loss_and_gradient(ln_dpo(), pair_batch([0.5 * n, -2.0], length=(n, 4)))[0] for n in (8, 16)
    )
    assert long == pytest.approx(short, rel=1e-12)


def test_length_has_an_influence_on_dpo():
    short, long = (
        loss_and_gradient(dpo(), pair_batch([0.5 * n, -2.0], length=(n, 4)))[0] for n in (8, 16)
    )
    assert long < short - 0.1
