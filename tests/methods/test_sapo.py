from math import exp, log

import pytest

from grupo.methods.sapo import sapo
from grupo.plans import Passes
from grupo.testing import batch_of, moved


def sigmoid(x):
    return 1 / (1 + exp(-x))


def learn(by, advantage):
    batch, method = batch_of(group=[0, 0], advantage=advantage), sapo()
    pi = moved(batch, by)
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad.flatten().tolist()


def test_the_gate_is_a_sigmoid_of_the_ratio_colder_for_bad_tokens():
    loss, gradient = learn([[log(1.5)], [log(0.5)]], [2.0, -1.0])
    f, g = sigmoid(0.5), sigmoid(1.05 * -0.5)
    assert loss == pytest.approx((-2 * 4 * f + 4 / 1.05 * g) / 2)
    # d/dlogp: A r 4 f (1 - f), the temperature cancels
    assert gradient == pytest.approx([-2 * 1.5 * 4 * f * (1 - f) / 2, 0.5 * 4 * g * (1 - g) / 2])


def test_on_policy_the_gradient_is_reinforces():
    _, gradient = learn([[0.0], [0.0]], [2.0, -1.0])  # 4 * 1/2 * 1/2 = 1
    assert gradient == pytest.approx([-1.0, 0.5])


def test_far_from_the_old_policy_hardly_anything_is_learned_but_never_nothing():
    _, gradient = learn([[log(9.0)], [log(9.0)]], [1.0, -1.0])
    assert 0 > gradient[0] > -0.01
    assert 0 < gradient[1] < -gradient[0]


def test_the_defaults_are_those_that_others_quote_from_the_paper():
    assert (sapo().loss.positive, sapo().loss.negative) == (1.0, 1.05)
    assert sapo().plan == Passes(minibatches=4)
