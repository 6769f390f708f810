from math import exp, log

import pytest
import torch

from grupo.methods.seq_mis import seq_mis
from grupo.testing import batch_of, moved

# products of ratios: 3 / 2 in the first row, 4 in the second
SAMPLER = [[-1.0 - log(3), -1.0 + log(2)], [-1.0 - log(4), 99.0]]
BATCH = batch_of([0, 0], length=[2, 1], advantage=[1.0, -1.0], seen={"logp@sampler": SAMPLER})


def test_an_answer_whose_product_is_above_the_cap_is_left_out():
    method, pi = seq_mis(), moved(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx(-1.5 * r / 2)  # it still counts in the mean
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-1.5 * r / 4] * 2 + [0.0])


def test_a_product_far_below_1_is_kept_small_as_it_is():
    batch = batch_of([0], advantage=[1.0], seen={"logp@sampler": [[-1.0 + log(100)]]})
    loss = seq_mis().loss(moved(batch, [[0.0]]), batch)
    assert loss.item() == pytest.approx(-0.01)


def test_the_cap_is_2():
    assert seq_mis() == seq_mis(group=8, cap=2.0, clip=0.2)
