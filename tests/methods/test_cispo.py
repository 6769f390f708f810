from math import exp

import pytest

from grupo.methods.cispo import cispo
from grupo.testing import batch_of, moved
from grupo.weights import token_mean

BATCH = batch_of(group=[0] * 4, advantage=[1.0, 1.0, -1.0, -1.0], logp=-3.0)
MOVES = [[2.0], [-2.0], [2.0], [0.1]]  # ratios 7.389, 0.135, 7.389, 1.105


def learn(method):
    pi = moved(BATCH, MOVES)
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad.flatten().tolist()


def test_every_token_has_a_gradient_and_none_more_than_the_cap():
    loss, gradient = learn(cispo())
    # log pi = -3 + move; weights min(r, 5), four tokens
    expected = -5 * -1 - exp(-2) * -5 + 5 * -1 + exp(0.1) * -2.9
    assert loss == pytest.approx(expected / 4)
    assert gradient == pytest.approx([-5 / 4, -exp(-2) / 4, 5 / 4, exp(0.1) / 4])


def test_a_lower_bound_is_there_if_wanted():
    _, gradient = learn(cispo(high=0.5, low=0.4))
    assert gradient == pytest.approx([-1.5 / 4, -0.6 / 4, 1.5 / 4, exp(0.1) / 4])


def test_the_defaults_are_one_sided():
    assert cispo().loss.weight.low == 1.0  # 1 - 1: no lower bound
    assert cispo().loss.weight.high == 4.0
    assert cispo().weigh is token_mean
    assert cispo().loss.stops_gradient
