"""SimPO: loss and gradient of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.simpo import simpo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # mean log-probabilities (-1 + 0.6) / 1 and -1; 2 0.6 - 2 0.25 = 0.7
    batch = pair_batch([0.0, 0.0], length=(1, 2))
    loss, gradient = loss_and_gradient(simpo(2.0, 0.25), batch, change=[0.6, 0.0])
    assert loss == pytest.approx(log(1 + exp(-0.7)))
    pull = 2 / (1 + exp(0.7))
    assert gradient == pytest.approx([-pull, pull / 2])


def test_no_reference_is_required():
    assert simpo().requires.all_signals == frozenset()
