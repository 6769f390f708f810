import pytest
import torch

from grupo.methods.opmd import opmd
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(method, moves):
    batch = make_batch([0, 0], [1.0, 0.0], length=[2, 1]).with_advantage(method.advantage)
    pi = perturb_logp(batch, moves)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0][batch.mask].tolist()


def test_squared_sequence_log_ratio_regularizes_to_old_policy():
    loss, gradient = loss_and_gradient(opmd(reward_temperature=0.5), [[0.5, 0.25], [-0.5, 9.0]])
    # A = 1/2, -1/2; log pi = -1.25, -1.5; rho = 0.75, -0.5
    assert loss == pytest.approx((0.5 * 1.25 + 0.25 * 0.5625 - 0.5 * 1.5 + 0.25 * 0.25) / 2)
    assert gradient == pytest.approx([(-0.5 + 0.375) / 2] * 2 + [(0.5 - 0.25) / 2])


def test_gradient_is_zero_at_regularized_optimum():
    _, gradient = loss_and_gradient(
        opmd(reward_temperature=0.5), [[0.5, 0.5], [-1.0, 9.0]]
    )  # rho = A / tau
    assert gradient == pytest.approx([0.0, 0.0, 0.0])
