from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.methods.gspo import gspo
from grupo.methods.gspo_token import gspo_token
from grupo.testing.batches import make_batch, perturb_logp

MOVES = [[0.3, -0.1], [-0.2, 0.0]]


def loss_and_gradient(method, batch):
    pi = perturb_logp(batch, MOVES)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    loss.backward()
    return loss.item(), pi.logp.grad


def test_uniform_advantages_reduce_to_gspo():
    batch = make_batch(group=[0, 0], length=[2, 1], advantage=[0.7, -0.3])
    for clips in ((3e-4, 4e-4), (0.2, 0.2)):
        loss, gradient = loss_and_gradient(gspo_token(8, *clips), batch)
        expected, slope = loss_and_gradient(gspo(8, *clips), batch)
        assert loss == pytest.approx(expected)
        assert torch.allclose(gradient, slope)


def test_gradient_follows_token_advantages():
    batch = make_batch(group=[0, 0], length=[2, 1], advantage=[1.0, 1.0])
    batch = replace(batch, advantage=torch.tensor([[2.0, -1.0], [1.0, 0.0]]).double())
    s, other = exp(0.1), exp(-0.2)  # s = exp((0.3 - 0.1) / 2)
    loss, gradient = loss_and_gradient(gspo_token(8, 0.2, 0.2), batch)
    # answers count 1/2, tokens of the first 1/4; no token's gradient flows into the other's
    assert loss == pytest.approx((-2 * s + s) / 4 - other / 2)
    assert gradient.flatten().tolist() == pytest.approx([-2 * s / 4, s / 4, -other / 2, 0])


def test_defaults_match_gspo():
    assert (gspo_token().loss.clip_low, gspo_token().loss.clip_high) == (3e-4, 4e-4)
    assert gspo_token().requires.surrogate_gradient
