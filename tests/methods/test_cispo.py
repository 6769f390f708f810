from math import exp

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.minibatches import Updates
from grupo.methods.cispo import cispo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 4, advantage=[1.0, 1.0, -1.0, -1.0], logp=-3.0)
MOVES = [[2.0], [-2.0], [2.0], [0.1]]  # ratios 7.389, 0.135, 7.389, 1.105


def learn(method):
    pi = perturb_logp(BATCH, MOVES)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad.flatten().tolist()


def test_every_token_has_a_gradient_up_to_the_cap():
    loss, gradient = learn(cispo())
    # log pi = -3 + move; weights min(r, 5), four tokens
    expected = -5 * -1 - exp(-2) * -5 + 5 * -1 + exp(0.1) * -2.9
    assert loss == pytest.approx(expected / 4)
    assert gradient == pytest.approx([-5 / 4, -exp(-2) / 4, 5 / 4, exp(0.1) / 4])


def test_lower_bound_is_optional():
    _, gradient = learn(cispo(clip_high=0.5, clip_low=0.4))
    assert gradient == pytest.approx([-1.5 / 4, -0.6 / 4, 1.5 / 4, exp(0.1) / 4])


def test_defaults_are_one_sided():
    assert cispo().loss.weight.clip_low == 1.0  # 1 - 1: no lower bound
    assert cispo().loss.weight.clip_high == 4.0
    assert cispo().aggregation is token_mean
    assert cispo().requires.surrogate_gradient


def test_update_plan_is_the_released_one():
    assert cispo().updates == Updates(minibatches=16)
