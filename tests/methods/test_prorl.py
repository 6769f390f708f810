from math import exp, sqrt

import pytest
import torch

from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.prorl import prorl
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_upper_clip_is_two_fifths():
    method = prorl(kl_coef=0.5)
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[2, 1]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.3, 0.4], [-0.3, 0.0]])  # ratios 1.35, 1.49; 0.74
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    k3 = [exp(-d) + d - 1 for d in (0.3, 0.4, -0.3)]
    surrogate = -A * exp(0.3) - A * 1.4 + A * 0.8
    assert loss.item() == pytest.approx((surrogate + 0.5 * sum(k3)) / 3)
    slopes = [1 - exp(-d) for d in (0.3, 0.4, -0.3)]  # of k3 in log pi
    expected = [-A * exp(0.3) + 0.5 * slopes[0], 0.5 * slopes[1], 0.5 * slopes[2]]
    assert gradient[batch.mask].tolist() == pytest.approx([g / 3 for g in expected])


def test_default_hyperparameters():
    method = prorl()
    assert method.sampler == GroupSampler(16)
    assert method.loss == Clip(0.2, 0.4) + 0.0001 * KL()
    assert method.filter is keep_nonzero_std
    assert method.reference == ReferenceUpdate(rate=1.0, every=400)
