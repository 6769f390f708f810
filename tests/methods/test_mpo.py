"""MPO: its three losses of a pair, by hand."""

from math import exp, log

import pytest

from grupo.methods.mpo import mpo
from tests.helpers.preference_batches import loss_and_gradient, pair_batch

H = [
    4.0,
    -2.0,
]  # log pi / pi_ref of the chosen and of the rejected answer; log pi_ref is known below


def part(index, batch):
    coefs = [0.0, 0.0, 0.0]
    coefs[index] = 1.0
    return loss_and_gradient(mpo(0.1, *coefs), batch)[0]


def test_preference_and_quality_of_a_pair():
    batch = pair_batch(H)
    assert part(0, batch) == pytest.approx(log(1 + exp(-0.6)))  # 0.1 (4 + 2)
    # d = (4 - 2) / 2 = 1: 0.1 (4 - 1) and 0.1 (1 + 2)
    assert part(1, batch) == pytest.approx(2 * log(1 + exp(-0.3)))


def test_the_losses_are_added_with_weights_of_0_8_0_2_and_1():
    batch = pair_batch(H)
    total = loss_and_gradient(mpo(), batch)[0]
    parts = [part(i, batch) for i in range(3)]
    assert total == pytest.approx(0.8 * parts[0] + 0.2 * parts[1] + parts[2])


def test_the_generation_loss_raises_the_chosen_answer_alone():
    _, gradient = loss_and_gradient(mpo(0.1, 0.0, 0.0, 1.0), pair_batch(H))
    assert gradient[0] < 0
    assert gradient[1] == 0
