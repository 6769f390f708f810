"""GRPO, Dr. GRPO and DAPO: hand-computed losses and gradients of one group of two rollouts.

Rewards 1 and 0, lengths 1 and 2; the policy's log-probabilities differ from the old ones (which are
also the reference's) by 0.22, 0.3 and -0.3: ratios 1.2461, 1.3499 and 0.7408.
"""

from math import exp, sqrt

import pytest
import torch

from grupo.algo.filters import keep_nonzero_std
from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.methods.dapo import dapo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.grpo import grpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

MOVES = [[0.22, 0.0], [0.3, -0.3]]


def loss_and_gradient(method):
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, MOVES)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[0, 1] == 0  # padding
    return loss.item(), gradient[batch.mask].tolist()


def k3(d):
    return exp(d) - d - 1


def test_grpo_loss_and_gradient():
    A = 0.5 / (sqrt(0.5) + 1e-6)  # mean 1/2, std sqrt((1/4 + 1/4) / 1)
    loss, gradient = loss_and_gradient(grpo(kl_coef=0.04))
    # weights 1/2, 1/4, 1/4; A > 0 above 1.2 is clipped, A < 0 above is not, A < 0 below is
    assert loss == pytest.approx(
        (-1.2 * A + 0.04 * k3(-0.22)) / 2
        + (A * exp(0.3) + 0.04 * k3(-0.3)) / 4
        + (A * 0.8 + 0.04 * k3(0.3)) / 4
    )
    assert gradient == pytest.approx(
        [
            0.04 * (1 - exp(-0.22)) / 2,
            (A * exp(0.3) + 0.04 * (1 - exp(-0.3))) / 4,
            0.04 * (1 - exp(0.3)) / 4,
        ]
    )


def test_grpo_without_kl_requires_no_reference():
    assert grpo(kl_coef=0.0).requires.all_signals == frozenset()
    assert grpo().requires.all_signals == {"logp@ref"}


def test_dr_grpo_loss_and_gradient():
    loss, gradient = loss_and_gradient(dr_grpo(max_length=4))
    # A = 1/2 and -1/2, every token weighs 1 / (2 * 4)
    assert loss == pytest.approx((-0.5 * 1.2 + 0.5 * exp(0.3) + 0.5 * 0.8) / 8)
    assert gradient == pytest.approx([0.0, 0.5 * exp(0.3) / 8, 0.0])


def test_dapo_loss_and_gradient():
    loss, gradient = loss_and_gradient(dapo(max_length=2, overlong_buffer=1))
    # the second is as long as the limit: rewards 1 and 0 - 1, mean 0, std sqrt(1 + 1)
    A = 1 / (sqrt(2) + 1e-6)
    # 1.2461 is below 1 + 0.28: not clipped here; every token weighs 1/3
    assert loss == pytest.approx((-A * exp(0.22) + A * exp(0.3) + A * 0.8) / 3)
    assert gradient == pytest.approx([-A * exp(0.22) / 3, A * exp(0.3) / 3, 0.0])


def test_defaults_match_paper():
    paper = dapo(max_length=20_480, overlong_buffer=4_096)
    assert paper.sampler == GroupSampler(16)
    assert (paper.loss.clip_low, paper.loss.clip_high) == (0.2, 0.28)
    assert paper.filter is keep_nonzero_std
    assert paper.curriculum.max_resample_rounds == 10
    assert paper.updates == Updates(minibatches=16)
    assert grpo().updates == SingleUpdate()  # "a single update following each exploration stage"
