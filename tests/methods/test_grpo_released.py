from math import exp, sqrt

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.grpo import grpo
from grupo.methods.grpo_released import grpo_released
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_long_answers_weigh_more_than_in_paper():
    batch = make_batch(group=[0, 0], length=[1, 3])
    assert grpo_released().aggregation(batch).sum(1).tolist() == [0.25, 0.75]
    assert grpo().aggregation(batch).sum(1).tolist() == pytest.approx([0.5, 0.5])


def test_loss_and_gradient():
    method = grpo_released(kl_coef=0.1)
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.22, 0.0], [0.3, -0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    k3 = [exp(-d) + d - 1 for d in (0.22, 0.3, -0.3)]
    assert loss.item() == pytest.approx((A * (-1.2 + exp(0.3) + 0.8) + 0.1 * sum(k3)) / 3)
    slopes = [1 - exp(-d) for d in (0.22, 0.3, -0.3)]
    expected = [0.1 * slopes[0], A * exp(0.3) + 0.1 * slopes[1], 0.1 * slopes[2]]
    assert gradient[batch.mask].tolist() == pytest.approx([g / 3 for g in expected])


def test_defaults_match_release():
    method = grpo_released()
    assert method.sampler == GroupSampler(5)
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL()
    assert method.aggregation is token_mean
    assert method.advantage == grpo().advantage


def test_step_has_4_minibatches():
    assert grpo_released().updates == Updates(minibatches=4)
