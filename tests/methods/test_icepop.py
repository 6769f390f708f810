from math import exp, log

import pytest
import torch

from grupo.algo.losses import IntervalMask
from grupo.methods.icepop import icepop
from grupo.testing.batches import make_batch, perturb_logp

K = [[6.0, 4.0], [0.4, 0.6]]  # pi_old / pi_sampler
SAMPLER = [[-1.0 - log(k) for k in row] for row in K]
BATCH = make_batch([0, 0], length=[2, 2], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_tokens_outside_interval_are_masked_on_both_sides():
    method, pi = icepop(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.1]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx((-4 * r + 0.6 * r) / 4)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([0.0, -4 * r / 4, 0.0, 0.6 * r / 4])


def test_default_interval():
    assert icepop().loss.weight.bound == IntervalMask(0.5, 5.0)
