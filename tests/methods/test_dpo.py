"""DPO: loss and gradient of pairs, by hand."""

from math import exp, log

import pytest

from grupo.methods.dpo import dpo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # z = 0.1 (4 + 2) = 0.6: -log sigmoid(0.6) = 0.4375
    loss, gradient = loss_and_gradient(dpo(beta=0.1), pair_batch([4.0, -2.0]))
    assert loss == pytest.approx(log(1 + exp(-0.6)))
    pull = 0.1 / (1 + exp(0.6))
    assert gradient == pytest.approx([-pull, pull])


def test_tokens_of_an_answer_are_summed():
    loss, gradient = loss_and_gradient(dpo(beta=0.1), pair_batch([4.0, -2.0], length=(8, 4)))
    assert loss == pytest.approx(log(1 + exp(-0.6)))
    assert gradient == pytest.approx([-0.1 / (1 + exp(0.6)), 0.1 / (1 + exp(0.6))])


def test_loss_is_a_mean_over_pairs():
    batch = pair_batch(
        [4.0, -2.0, 0.0, 0.0], length=(1,) * 4, group=(0, 0, 1, 1), reward=(1.0, 0.0) * 2
    )
    assert loss_and_gradient(dpo(beta=0.1), batch)[0] == pytest.approx(
        (log(1 + exp(-0.6)) + log(2)) / 2
    )


def test_pair_of_equal_rewards_has_no_loss():
    assert loss_and_gradient(dpo(), pair_batch([1.0, 0.0], reward=(1.0, 1.0))) == (0.0, [0.0, 0.0])
