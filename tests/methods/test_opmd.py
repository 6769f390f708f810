import pytest
import torch

from grupo.methods.opmd import opmd
from grupo.testing.batches import batch_of, moved


def learn(method, moves):
    batch = batch_of([0, 0], [1.0, 0.0], length=[2, 1]).credited(method.credit)
    pi = moved(batch, moves)
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0][batch.mask].tolist()


def test_a_square_holds_whole_answers_near_the_old_policy():
    loss, gradient = learn(opmd(tau=0.5), [[0.5, 0.25], [-0.5, 9.0]])
    # A = 1/2, -1/2; log pi = -1.25, -1.5; rho = 0.75, -0.5
    assert loss == pytest.approx((0.5 * 1.25 + 0.25 * 0.5625 - 0.5 * 1.5 + 0.25 * 0.25) / 2)
    assert gradient == pytest.approx([(-0.5 + 0.375) / 2] * 2 + [(0.5 - 0.25) / 2])


def test_the_gradient_vanishes_at_the_regularised_optimum():
    _, gradient = learn(opmd(tau=0.5), [[0.5, 0.5], [-1.0, 9.0]])  # rho = A / tau
    assert gradient == pytest.approx([0.0, 0.0, 0.0])


def test_the_defaults_are_these():
    assert opmd() == opmd(group=8, tau=0.1)
