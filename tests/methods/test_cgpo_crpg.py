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


def test_loss_is_a_mean_over_answers_and_their_tokens():
    method = cgpo_crpg()
    batch = batch_of_two().with_advantage(method.advantage)
    logp = torch.full((2, 2), -3.0, dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    assert loss.item() == pytest.approx(0.0)
    (gradient,) = torch.autograd.grad(loss, logp)
    a = BEATS / 4
    assert gradient.flatten().tolist() == pytest.approx([-a / 4, -a / 4, a / 2, 0.0])
