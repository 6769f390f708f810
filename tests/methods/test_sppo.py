"""SPPO: loss and gradient of a group, by hand; no offline use."""

from math import exp

import pytest

from grupo.methods.sppo import sppo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch


def duel(wins=0.7310585786300049):  # sigmoid(1)
    return pair_batch([0.0, 0.0], reward_terms={"win_rate": [wins, 1 - wins]})


def test_loss_and_gradient_of_a_pair():
    # P = (0.5 + 0.7311) / 2 = 0.6155: targets 0.1155 and -0.1155; (2 0.1155^2) / 2 = 0.01335
    loss, gradient = loss_and_gradient(sppo(group_size=2, eta=1.0), duel())
    target = (0.5 + 1 / (1 + exp(-1))) / 2 - 0.5
    assert loss == pytest.approx(target**2)
    assert loss == pytest.approx(0.01335, abs=1e-5)
    assert gradient == pytest.approx([-target, target])


def test_each_answer_has_its_own_target():
    target = (0.5 + 1 / (1 + exp(-1))) / 2 - 0.5
    loss, gradient = loss_and_gradient(sppo(eta=1.0), duel(), change=[target, -target])
    assert (loss, gradient) == (pytest.approx(0.0, abs=1e-20), pytest.approx([0.0, 0.0], abs=1e-12))


def test_target_is_scaled():
    assert loss_and_gradient(sppo(eta=10.0), duel())[0] == pytest.approx(1.335, abs=1e-3)
