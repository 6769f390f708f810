from math import exp, log

import pytest
import torch

from grupo.methods.seq_tis import seq_tis
from grupo.testing.batches import make_batch, perturb_logp

# products of ratios: 3 / 2 in the first row, 4 in the second
SAMPLER = [[-1.0 - log(3), -1.0 + log(2)], [-1.0 - log(4), 99.0]]
BATCH = make_batch([0, 0], length=[2, 1], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_sequence_weight_is_truncated_product_of_ratios():
    method, pi = seq_tis(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx(-1.5 * r / 2 + 2 * r / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-1.5 * r / 4] * 2 + [r])
