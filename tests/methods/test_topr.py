from math import exp

import pytest

from grupo.methods.topr import topr
from grupo.testing.batches import make_batch, perturb_logp

REWARD = [1.0, 0.0, 0.0]


def loss_and_gradient(by, logp=-1.0, length=(2, 2, 1)):
    method = topr()
    batch = make_batch(group=[0] * 3, reward=REWARD, length=length, logp=logp).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, by)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad[batch.mask].tolist()


def test_positive_rollouts_have_weight_one_and_negative_ones_truncated_ratio():
    loss, gradient = loss_and_gradient([[-0.5, -0.5], [-0.2, -0.5], [0.4, 0.0]])
    w = exp(-0.7)  # the second became unlikelier, the third likelier: 1
    # A = 1/2, -1/2, -1/2 and log pi of the rollouts -3, -2.7, -0.6, of 2, 2 and 1 tokens
    assert loss == pytest.approx((-0.5 * -3 / 2 + 0.5 * w * -2.7 / 2 + 0.5 * -0.6) / 3)
    assert gradient == pytest.approx([-1 / 12, -1 / 12, w / 12, w / 12, 1 / 6])


def test_baseline_is_one_half_for_every_group():
    batch = make_batch(group=[0, 0, 1], reward=[1.0, 1.0, 0.0])
    assert topr().advantage(batch.reward, batch).tolist() == [0.5, 0.5, -0.5]
    assert topr(baseline=0.8).advantage(batch.reward, batch).tolist() == pytest.approx(
        [0.2, 0.2, -0.8]
    )


def test_on_policy_gradient_is_reinforce():
    _, gradient = loss_and_gradient([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    # A / (3 rollouts of L tokens)
    assert gradient == pytest.approx([-1 / 12, -1 / 12, 1 / 12, 1 / 12, 1 / 6])
