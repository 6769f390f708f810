from math import exp, sqrt

import pytest
import torch

from grupo.algo.aggregation import TopEntropy, token_mean
from grupo.algo.filters import informative
from grupo.methods.forking_tokens import forking_tokens
from grupo.testing.batches import batch_of, moved

ENTROPY = [[0.1, 2.0, 0.3], [1.5, 0.05, 9.0]]  # 9: padding


def test_only_the_most_uncertain_tokens_learn():
    method = forking_tokens(limit=20, margin=10, share=0.4)  # 2 of 5
    batch = batch_of([0, 0], [1.0, 0.0], length=[3, 2], seen={"entropy": ENTROPY})
    batch = batch.credited(method.credit)
    pi = moved(batch, [[0.1] * 3] * 2)
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    A, R = 0.5 / (sqrt(0.5) + 1e-6), exp(0.1)
    assert loss.item() == pytest.approx((-R * A + R * A) / 5, abs=1e-12)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    expected = [0.0, -R * A / 5, 0.0, R * A / 5, 0.0]  # divided by all 5 tokens
    assert gradient[batch.mask].tolist() == pytest.approx(expected)


def test_the_rest_is_dapos_and_the_share_is_the_titles():
    paper = forking_tokens(limit=20_480, margin=4_096)
    assert paper.weigh == TopEntropy(0.2, token_mean)
    assert (paper.loss.low, paper.loss.high) == (0.2, 0.28)
    assert paper.curate is informative
    assert paper.needs == {"entropy"}
