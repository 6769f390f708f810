from math import exp, log

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.pacs import pacs
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(moves, rewards, beta=1.0):
    method, batch = pacs(log_ratio_scale=beta), make_batch([0] * len(rewards), rewards)
    pi = perturb_logp(batch, moves)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()


def sigmoid(x):
    return 1 / (1 + exp(-x))


def test_logits_are_leave_one_out_log_ratios():
    loss, gradient = loss_and_gradient([[0.5], [-0.5]], [1.0, 0.0])  # psi = 1 and -1
    assert loss == pytest.approx(log(1 + exp(-1)))
    # d psi_i / d rho_j is 1 or -1: both errors push both
    error = sigmoid(1.0) - 1
    assert gradient == pytest.approx([error, -error])


def test_initial_loss_is_log_2_with_balanced_classes():
    loss, gradient = loss_and_gradient([[0.0]] * 4, [1.0, 1.0, 1.0, 0.0])
    assert loss == pytest.approx(log(2))
    # weights 2/3 and 2; errors (1/2 - y) w are -1/3 three times and 1
    error = [-1 / 3, -1 / 3, -1 / 3, 1.0]
    expected = [(e - (sum(error) - e) / 3) / 4 for e in error]
    assert gradient == pytest.approx(expected)


def test_single_label_group_is_not_balanced():
    loss, gradient = loss_and_gradient([[0.0], [0.0]], [1.0, 1.0])
    assert loss == pytest.approx(log(2))
    assert gradient == pytest.approx([0.0, 0.0])  # both errors cancel in the leave-one-out means


def test_beta_scales_logits():
    assert loss_and_gradient([[0.5], [-0.5]], [1.0, 0.0], beta=2.0)[0] == pytest.approx(
        log(1 + exp(-2))
    )


def test_step_has_4_minibatches():
    assert pacs().updates == Updates(minibatches=4)
