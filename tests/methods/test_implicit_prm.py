"""The cross-entropy of an implicit reward, and its gradient."""

from math import exp, log

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.implicit_prm import implicit_prm
from grupo.testing.batches import make_batch


def loss_and_gradient(ratios, correct, beta=0.05):
    length = [len(r) for r in ratios]
    batch = make_batch(group=[0] * len(length), length=length, reward_terms={"correct": correct})
    logp = batch.old_logp.clone()
    for row, r in enumerate(ratios):
        logp[row, : len(r)] += torch.tensor(r)
    logp.requires_grad_()
    method = implicit_prm(log_ratio_scale=beta)
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    return loss.item(), torch.autograd.grad(loss, logp)[0]


def sigmoid(x):
    return 1 / (1 + exp(-x))


def test_loss_raises_probability_of_correct_answer():
    loss, gradient = loss_and_gradient([[2.0, -1.0, 3.0]], [1.0])
    assert loss == pytest.approx(-log(sigmoid(0.2)))  # 0.598
    assert gradient[0].tolist() == pytest.approx([-0.05 * (1 - sigmoid(0.2))] * 3)


def test_loss_lowers_probability_of_wrong_answer():
    loss, gradient = loss_and_gradient([[2.0, -1.0, 3.0]], [0.0])
    assert loss == pytest.approx(-log(1 - sigmoid(0.2)))
    assert gradient[0].tolist() == pytest.approx([0.05 * sigmoid(0.2)] * 3)


def test_answers_have_equal_weight_regardless_of_length():
    loss, gradient = loss_and_gradient([[2.0, -1.0, 3.0], [1.0]], [1.0, 0.0])
    assert loss == pytest.approx((log(1 + exp(-0.2)) + log(1 + exp(0.05))) / 2)
    assert gradient[1].tolist() == pytest.approx([0.05 * sigmoid(0.05) / 2, 0.0, 0.0])


def test_soft_label_is_regressed():
    _, gradient = loss_and_gradient([[0.0]], [0.5])
    assert gradient.item() == 0


def test_defaults_match_paper():
    assert implicit_prm().requires.all_signals == {"logp@ref"}
