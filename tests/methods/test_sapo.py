from math import exp, log

import pytest

from grupo.algo import ratios
from grupo.algo.minibatches import Updates
from grupo.methods.sapo import SoftGateLoss, sapo
from grupo.testing.batches import make_batch, perturb_logp


def sigmoid(x):
    return 1 / (1 + exp(-x))


def loss_and_gradient(by, advantage):
    batch, method = make_batch(group=[0, 0], advantage=advantage), sapo()
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad.flatten().tolist()


def test_gate_is_sigmoid_with_lower_temperature_for_negative_advantages():
    loss, gradient = loss_and_gradient([[log(1.5)], [log(0.5)]], [2.0, -1.0])
    f, g = sigmoid(0.5), sigmoid(1.05 * -0.5)
    assert loss == pytest.approx((-2 * 4 * f + 4 / 1.05 * g) / 2)
    # d/dlogp: A r 4 f (1 - f), the temperature cancels
    assert gradient == pytest.approx([-2 * 1.5 * 4 * f * (1 - f) / 2, 0.5 * 4 * g * (1 - g) / 2])


def test_on_policy_gradient_is_reinforce():
    _, gradient = loss_and_gradient([[0.0], [0.0]], [2.0, -1.0])  # 4 * 1/2 * 1/2 = 1
    assert gradient == pytest.approx([-1.0, 0.5])


def test_gradient_decays_off_policy_but_never_vanishes():
    _, gradient = loss_and_gradient([[log(9.0)], [log(9.0)]], [1.0, -1.0])
    assert 0 > gradient[0] > -0.01
    assert 0 < gradient[1] < -gradient[0]


def test_defaults_match_paper():
    assert (sapo().loss.positive_temperature, sapo().loss.negative_temperature) == (1.0, 1.05)
    assert sapo().updates == Updates(minibatches=4)


def test_temperatures_are_exact_in_double_precision():
    loss, _ = loss_and_gradient([[0.0], [log(0.5)]], [1.0, -1.0])
    expected = (-4 * 0.5 + 4 / 1.05 * sigmoid(1.05 * -0.5)) / 2
    assert loss == pytest.approx(expected, rel=1e-14)


def test_gate_of_the_sequence_ratio():
    batch = make_batch(group=[0], length=[2], advantage=[1.0])
    loss = SoftGateLoss(ratio=ratios.sequence)(perturb_logp(batch, [[log(4.0), 0.0]]), batch)
    assert loss.flatten().tolist() == pytest.approx([-4 * sigmoid(2 - 1)] * 2)  # (4 x 1)^(1/2)
