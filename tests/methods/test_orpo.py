"""ORPO: loss and gradient of a pair, by hand."""

from math import log

import pytest

from grupo.methods.orpo import orpo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def test_loss_of_a_pair():
    # p = 1/2 and 1/4: odds 1 and 1/3, -log sigmoid(log 3) = 0.2877; loss 0.6931 + 0.1 0.2877
    batch = pair_batch([0.0, 0.0], logp=-log(4))
    loss, gradient = loss_and_gradient(orpo(0.1), batch, change=[log(2), 0.0])
    assert loss == pytest.approx(log(2) + 0.1 * log(4 / 3))
    # d log odds / d log p = 1 / (1 - p); sigmoid(-log 3) = 1/4
    assert gradient == pytest.approx([-1 - 0.1 * 0.25 / 0.5, 0.1 * 0.25 / 0.75])


def test_likelihood_is_a_mean_over_tokens():
    loss, _ = loss_and_gradient(orpo(0.0), pair_batch([0.0, 0.0], length=(8, 4), logp=-0.7))
    assert loss == pytest.approx(0.7)


def test_no_reference_is_required():
    assert orpo().requires.all_signals == frozenset()
