from math import exp, sqrt

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.deepseek_r1 import deepseek_r1
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_ratios_are_clipped_only_above_11():
    method = deepseek_r1(kl_coef=0.0)
    batch = make_batch(group=[0, 0], reward=[2.0, 0.0], length=[2, 1]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[2.3, 2.5], [2.5, 0.0]])  # ratios 9.97, 12.2; 12.2
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 1 / (sqrt(2) + 1e-6)
    assert loss.item() == pytest.approx(-A * (exp(2.3) + 11) / 4 + A * exp(2.5) / 2)
    assert gradient[batch.mask].tolist() == pytest.approx([-A * exp(2.3) / 4, 0, A * exp(2.5) / 2])


def test_defaults_are_the_papers():
    method = deepseek_r1()
    assert method.sampler == GroupSampler(16)
    assert method.loss == Clip(10.0, 10.0) + 0.001 * KL()
    assert method.updates == Updates(epochs=1, minibatches=16)
    assert method.reference == ReferenceUpdate(rate=1.0, every=25)


def test_the_reference_is_replaced_after_400_optimizer_updates():
    method = deepseek_r1()
    assert method.reference.every * method.updates.minibatches == 400
