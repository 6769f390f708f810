from math import exp, log

import pytest
import torch

from grupo.algo.token_level import per_action
from grupo.methods.tis import tis
from grupo.testing.batches import make_batch, perturb_logp

# The engine was 3 times less sure of the first token than the trainer, 4 times surer of the second.
SAMPLER = [[-1.0 - log(3), -1.0 + log(4)], [-1.0, 99.0]]
BATCH = make_batch([0, 0], length=[2, 1], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_token_weight_is_truncated_ratio():
    method, pi = tis(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx((-2 * r - r / 4) / 4 + r / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-2 * r / 4, -r / 16, r / 2])


def test_equal_engine_logps_change_nothing():
    method, batch = tis(), make_batch([0, 0], advantage=[1.0, -1.0])
    pi = perturb_logp(batch, [[0.5], [0.5]])
    assert method.loss(pi, batch).tolist() == method.loss.loss(pi, batch).tolist()


def test_defaults_match_release():
    weight = tis().loss.weight
    assert (weight.bound.cap, weight.level) == (2.0, per_action)
    assert tis().requires.all_signals == {"logp@sampler"}
