"""CRPG: calibrated rewards, feasibility, and the KL factor."""

from math import exp

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.cgpo_crpg import cgpo_crpg
from grupo.testing.batches import make_batch

BEATS = 1 / (1 + exp(-1))  # r = 2 against r_ref = 1: 0.7311


def batch_of_two(k=(5.0, 5.0), feasible=(1.0, 0.0)):
    return make_batch(
        group=[0, 0],
        reward=[2.0, 2.0],
        length=[2, 1],
        reward_terms={"feasible": list(feasible), "baseline": [1.0, 1.0]},
        signals={"logp@ref": [[-1 - k[0] / 2] * 2, [-1 - k[1], 0.0]]},
    )


def test_kl_factor_applies_before_the_batch_mean():
    A = batch_of_two().with_advantage(cgpo_crpg().advantage).advantage
    assert A[:, 0].tolist() == pytest.approx([BEATS / 4, -BEATS / 4])  # 0.1828
    A = (
        batch_of_two(k=(12.0, 0.0), feasible=(1.0, 1.0))
        .with_advantage(cgpo_crpg().advantage)
        .advantage
    )
    assert A[:, 0].tolist() == pytest.approx([-BEATS / 2, BEATS / 2])


def test_loss_is_a_mean_over_answers_of_the_sum_of_their_tokens():
    method = cgpo_crpg()
    batch = make_batch(
        group=[0, 0],
        reward=[3.0, -1.0],
        length=[2, 10],
        reward_terms={"feasible": [1.0, 1.0], "baseline": [1.0, 1.0]},
        signals={"logp@ref": [[-1.0] * 10] * 2},
    ).with_advantage(method.advantage)
    a = (1 / (1 + exp(-2)) - 1 / (1 + exp(2))) / 2  # 0.3808, half the difference of the rewards
    logp = torch.full((2, 10), -3.0, dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    assert loss.item() == pytest.approx((2 * a * 3 - 10 * a * 3) / 2)
    (gradient,) = torch.autograd.grad(loss, logp)
    # a token of the long answer counts as much as one of the short answer: 0.1904 each
    expected = [-a / 2] * 2 + [0.0] * 8 + [a / 2] * 10
    assert gradient.flatten().tolist() == pytest.approx(expected)
