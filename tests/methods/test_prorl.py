from math import exp, sqrt

import pytest
import torch

from grupo.algo.filters import informative
from grupo.algo.losses import KL, Clip
from grupo.core.reference_update import Follow
from grupo.methods.prorl import prorl
from grupo.rollouts.samplers import Independent
from grupo.testing.batches import batch_of, moved


def test_unlikely_tokens_may_grow_by_two_fifths():
    method = prorl(kl=0.5)
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], length=[2, 1]).credited(method.credit)
    pi = moved(batch, [[0.3, 0.4], [-0.3, 0.0]])  # ratios 1.35, 1.49; 0.74
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    k3 = [exp(-d) + d - 1 for d in (0.3, 0.4, -0.3)]
    surrogate = -A * exp(0.3) - A * 1.4 + A * 0.8
    assert loss.item() == pytest.approx((surrogate + 0.5 * sum(k3)) / 3)
    slopes = [1 - exp(-d) for d in (0.3, 0.4, -0.3)]  # of k3 in log pi
    expected = [-A * exp(0.3) + 0.5 * slopes[0], 0.5 * slopes[1], 0.5 * slopes[2]]
    assert gradient[batch.mask].tolist() == pytest.approx([g / 3 for g in expected])


def test_the_defaults():
    method = prorl()
    assert method.sample == Independent(16)
    assert method.loss == Clip(0.2, 0.4) + 0.0001 * KL()
    assert method.curate is informative
    assert method.reference == Follow(rate=1.0, every=400)
