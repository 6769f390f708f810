"""GRPO, Dr. GRPO and DAPO on one group of two, from rewards to gradients, by hand.

Rewards 1 and 0, lengths 1 and 2; the policy's log-probabilities moved from the old ones (which are
the reference's, too) by 0.22, 0.3 and -0.3: ratios 1.2461, 1.3499 and 0.7408.
"""

from math import exp, sqrt

import pytest
import torch

from grupo.curate import informative
from grupo.methods.dapo import dapo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.grpo import grpo
from grupo.plans import OnePass
from grupo.sampling import Independent
from grupo.testing import batch_of, moved

MOVES = [[0.22, 0.0], [0.3, -0.3]]


def learn(method):
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).credited(method.credit)
    pi = moved(batch, MOVES)
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[0, 1] == 0  # padding
    return loss.item(), gradient[batch.mask].tolist()


def k3(d):
    return exp(d) - d - 1


def test_grpo():
    A = 0.5 / (sqrt(0.5) + 1e-6)  # mean 1/2, std sqrt((1/4 + 1/4) / 1)
    loss, gradient = learn(grpo(kl=0.04))
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


def test_grpo_without_kl_asks_for_no_reference():
    assert grpo(kl=0.0).needs == frozenset()
    assert grpo().needs == {"logp@ref"}


def test_dr_grpo():
    loss, gradient = learn(dr_grpo(length=4))
    # A = 1/2 and -1/2, every token weighs 1 / (2 * 4)
    assert loss == pytest.approx((-0.5 * 1.2 + 0.5 * exp(0.3) + 0.5 * 0.8) / 8)
    assert gradient == pytest.approx([0.0, 0.5 * exp(0.3) / 8, 0.0])


def test_dapo():
    loss, gradient = learn(dapo(limit=2, margin=1))
    # the second is as long as the limit: rewards 1 and 0 - 1, mean 0, std sqrt(1 + 1)
    A = 1 / (sqrt(2) + 1e-6)
    # 1.2461 is below 1 + 0.28: not clipped here; every token weighs 1/3
    assert loss == pytest.approx((-A * exp(0.22) + A * exp(0.3) + A * 0.8) / 3)
    assert gradient == pytest.approx([-A * exp(0.22) / 3, A * exp(0.3) / 3, 0.0])


def test_the_defaults_are_the_papers():
    paper = dapo(limit=20_480, margin=4_096)
    assert paper.sample == Independent(16)
    assert (paper.loss.low, paper.loss.high) == (0.2, 0.28)
    assert paper.curate is informative
    assert paper.curriculum.rounds == 10
    assert grpo().plan == OnePass()  # "a single update following each exploration stage"
    assert grpo() == grpo(group=8, clip=0.2, kl=0.04)
