from math import exp, log

import pytest
import torch

from grupo.methods.seq_tis import seq_tis
from grupo.testing import batch_of, moved

# products of ratios: 3 / 2 in the first row, 4 in the second
SAMPLER = [[-1.0 - log(3), -1.0 + log(2)], [-1.0 - log(4), 99.0]]
BATCH = batch_of([0, 0], length=[2, 1], advantage=[1.0, -1.0], seen={"logp@sampler": SAMPLER})


def test_an_answer_weighs_by_the_product_of_its_ratios_up_to_the_cap():
    method, pi = seq_tis(), moved(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx(-1.5 * r / 2 + 2 * r / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-1.5 * r / 4] * 2 + [r])


def test_the_cap_is_2():
    assert seq_tis() == seq_tis(group=8, cap=2.0, clip=0.2)
