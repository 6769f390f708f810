"""PPO on one answer of three tokens: advantages, value targets and both gradients."""

from math import exp

import pytest
import torch

from grupo.algo.losses.critic import ValueLoss
from grupo.algo.minibatches import Updates
from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Signals
from grupo.methods.ppo import ppo
from grupo.testing.batches import make_batch

V = [[0.2, 0.4, 0.5]]
# V = 0 after the end: d = 0.2, 0.1, 0.5; lam 0.95
A = [0.2 + 0.95 * (0.1 + 0.95 * 0.5), 0.1 + 0.95 * 0.5, 0.5]


def answer():
    batch = make_batch(group=[0], reward=[1.0], length=[3], signals={"value": V})
    return batch.with_advantage(ppo().advantage)


def signals_with_value(batch, moves, value):
    return Signals(
        logp=(batch.old_logp + torch.tensor([moves])).requires_grad_(),
        value=torch.tensor([value], dtype=torch.float64, requires_grad=True),
    )


def test_advantages_are_generalized_advantage_estimates():
    assert answer().advantage[0].tolist() == pytest.approx(A)
    assert pytest.approx([0.74625, 0.575, 0.5]) == A


def test_loss_and_gradients():
    batch, method = answer(), ppo()
    value = [0.3, 0.9, 0.5]
    pi = signals_with_value(batch, [0.3, 0.1, -0.3], value)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    R = [a + v for a, v in zip(A, V[0], strict=True)]
    misses = [v - r for v, r in zip(value, R, strict=True)]
    surrogate = -(1.2 * A[0] + exp(0.1) * A[1] + exp(-0.3) * A[2])  # A > 0: above 1.2 is clipped
    assert loss.item() == pytest.approx((surrogate + sum(m**2 for m in misses)) / 3)
    to_logp, to_value = torch.autograd.grad(loss, [pi.logp, pi["value"]])
    assert to_logp[0].tolist() == pytest.approx([0, -exp(0.1) * A[1] / 3, -exp(-0.3) * A[2] / 3])
    assert to_value[0].tolist() == pytest.approx([2 * m / 3 for m in misses])


def test_lambda_one_value_target_is_outcome():
    batch = make_batch(group=[0], reward=[1.0], length=[3], signals={"value": V})
    batch = batch.with_advantage(ppo(gae_lambda=1.0).advantage)
    loss = ValueLoss()(signals_with_value(batch, [0.0] * 3, [0.25, 0.25, 0.25]), batch)
    assert loss[0].tolist() == pytest.approx([0.75**2] * 3)


def test_requires_only_value_head():
    assert ppo().requires.heads == (LinearHead("value"),)
    assert ppo().requires.all_signals == {"value"}
    assert ppo().requires.signals == {"value"}


def test_defaults_match_paper():
    assert ppo().updates == Updates(epochs=3)
    assert ppo().advantage.gamma == 1.0
