from math import exp

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.methods.dft import dft
from grupo.rollouts.samplers import DemonstrationSampler, SolutionColumn
from grupo.testing.batches import make_batch, perturb_logp


def test_loss_is_nll_weighted_by_the_probability():
    batch = make_batch([0, 0], logp=0.0).with_advantage(dft().advantage)
    pi = perturb_logp(batch, [[-0.1], [-5.0]])
    loss = dft().loss(pi, batch)
    assert loss.flatten().tolist() == pytest.approx([0.1 * exp(-0.1), 5 * exp(-5)])
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([-exp(-0.1), -exp(-5)])


def test_gradient_is_that_of_minus_the_probability():
    batch = make_batch([0, 0], logp=0.0).with_advantage(dft().advantage)
    pi = perturb_logp(batch, [[-0.7], [-2.0]])
    (gradient,) = torch.autograd.grad(dft().loss(pi, batch).sum(), pi.logp)
    (expected,) = torch.autograd.grad(-pi.logp.exp().sum(), pi.logp)
    assert gradient.flatten().tolist() == pytest.approx(expected.flatten().tolist())


def test_reward_is_ignored():
    batch = make_batch([0, 0], reward=[-3.0, 0.0]).with_advantage(dft().advantage)
    assert batch.advantage.tolist() == [[1.0], [1.0]]


def test_defaults():
    assert dft().sampler == DemonstrationSampler(SolutionColumn("solution"))
    assert dft().aggregation is token_mean
    assert dft().requires.surrogate_gradient
