from math import exp, sqrt

import pytest
import torch

from grupo.losses import KL, Clip
from grupo.methods.grpo import grpo
from grupo.methods.grpo_released import grpo_released
from grupo.sampling import Independent
from grupo.testing import batch_of, moved
from grupo.weights import token_mean


def test_a_long_answer_weighs_more_than_in_the_paper():
    batch = batch_of(group=[0, 0], length=[1, 3])
    assert grpo_released().weigh(batch).sum(1).tolist() == [0.25, 0.75]
    assert grpo().weigh(batch).sum(1).tolist() == pytest.approx([0.5, 0.5])


def test_loss_and_gradient_of_a_group_of_two():
    method = grpo_released(kl=0.1)
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).credited(method.credit)
    pi = moved(batch, [[0.22, 0.0], [0.3, -0.3]])
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    k3 = [exp(-d) + d - 1 for d in (0.22, 0.3, -0.3)]
    assert loss.item() == pytest.approx((A * (-1.2 + exp(0.3) + 0.8) + 0.1 * sum(k3)) / 3)
    slopes = [1 - exp(-d) for d in (0.22, 0.3, -0.3)]
    expected = [0.1 * slopes[0], A * exp(0.3) + 0.1 * slopes[1], 0.1 * slopes[2]]
    assert gradient[batch.mask].tolist() == pytest.approx([g / 3 for g in expected])


def test_the_defaults_are_the_releases():
    method = grpo_released()
    assert method.sample == Independent(5)
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL()
    assert method.weigh is token_mean
    assert method.credit == grpo().credit
