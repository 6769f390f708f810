from math import exp, log

import pytest
import torch

from grupo.losses import Within
from grupo.methods.icepop import icepop
from grupo.testing import batch_of, moved

K = [[6.0, 4.0], [0.4, 0.6]]  # pi_old / pi_sampler
SAMPLER = [[-1.0 - log(k) for k in row] for row in K]
BATCH = batch_of([0, 0], length=[2, 2], advantage=[1.0, -1.0], seen={"logp@sampler": SAMPLER})


def test_tokens_outside_the_interval_are_dropped_on_both_sides():
    method, pi = icepop(), moved(BATCH, [[0.1, 0.1], [0.1, 0.1]])
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx((-4 * r + 0.6 * r) / 4)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([0.0, -4 * r / 4, 0.0, 0.6 * r / 4])


def test_the_default_interval_is_this():
    assert icepop().loss.weight.bound == Within(0.5, 5.0)
