"""RSO's hinge loss: loss and gradient of a pair, by hand."""

import pytest

from grupo.methods.hinge import hinge
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    loss, gradient = loss_and_gradient(hinge(gamma=0.1), pair_batch([4.0, -2.0]))
    assert loss == pytest.approx(1 - 0.6)
    assert gradient == pytest.approx([-0.1, 0.1])


def test_pair_with_a_large_margin_has_no_gradient():
    assert loss_and_gradient(hinge(gamma=0.1), pair_batch([9.0, -2.0])) == (0.0, [0.0, 0.0])
