from math import exp

import pytest
import torch

from grupo.methods.earl_rtl import earl_rtl
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(
    [0], length=[5], advantage=[1.0], signals={"entropy": [[0.1, 2.0, 0.3, 1.5, 0.05]]}
)


def loss_and_gradient(method):
    pi = perturb_logp(BATCH, [[0.1] * 5])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()


def test_gate_selects_most_uncertain_tokens():
    loss, gradient = loss_and_gradient(earl_rtl(top_entropy_fraction=0.4))
    assert loss == pytest.approx(-exp(0.1))  # the mean over open gates
    assert gradient == pytest.approx([0.0, -exp(0.1) / 2, 0.0, -exp(0.1) / 2, 0.0])


def test_fully_open_gate_reduces_to_token_mean():
    loss, gradient = loss_and_gradient(earl_rtl(top_entropy_fraction=1.0))
    assert loss == pytest.approx(-exp(0.1))
    assert gradient == pytest.approx([-exp(0.1) / 5] * 5)
