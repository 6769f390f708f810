"""IPO: loss and gradient of a pair, by hand."""

import pytest

from grupo.methods.ipo import ipo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_and_gradient_of_a_pair():
    # mean log-ratios 4 / 8 and -2 / 4, difference 1; target 1 / (2 0.2) = 2.5
    loss, gradient = loss_and_gradient(ipo(tau=0.2), pair_batch([4.0, -2.0], length=(8, 4)))
    assert loss == pytest.approx(1.5**2)
    assert gradient == pytest.approx([-2 * 1.5 / 8, 2 * 1.5 / 4])


def test_chosen_answer_is_to_have_the_larger_log_ratio():
    aimed, opposite = (
        loss_and_gradient(ipo(tau=0.5), pair_batch(h))[0] for h in ([0.5, -0.5], [-0.5, 0.5])
    )
    assert (aimed, opposite) == (pytest.approx(0.0), pytest.approx(4.0))
