from math import exp, log

import pytest
import torch

from grupo.losses.rows import by_action
from grupo.methods.tis import tis
from grupo.testing import batch_of, moved

# The engine was 3 times less sure of the first token than the trainer, 4 times surer of the second.
SAMPLER = [[-1.0 - log(3), -1.0 + log(4)], [-1.0, 99.0]]
BATCH = batch_of([0, 0], length=[2, 1], advantage=[1.0, -1.0], seen={"logp@sampler": SAMPLER})


def test_each_token_weighs_by_its_ratio_up_to_the_cap():
    method, pi = tis(), moved(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx((-2 * r - r / 4) / 4 + r / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-2 * r / 4, -r / 16, r / 2])


def test_an_engine_that_agrees_changes_nothing():
    method, batch = tis(), batch_of([0, 0], advantage=[1.0, -1.0])
    pi = moved(batch, [[0.5], [0.5]])
    assert method.loss(pi, batch).tolist() == method.loss.loss(pi, batch).tolist()


def test_the_defaults_are_the_released_ones():
    weight = tis().loss.weight
    assert (weight.bound.cap, weight.level) == (2.0, by_action)
    assert tis().needs == {"logp@sampler"}
