"""NCA: loss and gradient of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.nca import nca
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    loss, gradient = loss_and_gradient(nca(beta=0.1), pair_batch([4.0, -2.0]))
    assert loss == pytest.approx(
        log(1 + exp(-0.4)) + log(1 + exp(0.4)) / 2 + log(1 + exp(-0.2)) / 2
    )
    chosen = 0.1 * (-1 / (1 + exp(0.4)) + 0.5 / (1 + exp(-0.4)))
    assert gradient == pytest.approx([chosen, 0.05 / (1 + exp(0.2))])


def test_likelihood_of_the_chosen_answer_has_an_optimum():
    # sigmoid(beta h) = 2/3
    _, gradient = loss_and_gradient(nca(beta=0.1), pair_batch([10 * log(2), 0.0]))
    assert gradient[0] == pytest.approx(0.0, abs=1e-12)
