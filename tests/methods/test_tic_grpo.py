from math import exp

import pytest

from grupo.algo.ratios import product
from grupo.methods.tic_grpo import tic_grpo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[3, 1], advantage=[1.0, -1.0])


def loss_and_gradient(by):
    method, pi = tic_grpo(), perturb_logp(BATCH, by)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    loss.backward()
    assert pi.logp.grad is not None
    return loss.item(), pi.logp.grad[BATCH.mask].tolist()


def test_rewards_are_divided_by_the_length_before_they_are_standardised():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 1.0], length=[2, 2, 20])
    A = batch.with_advantage(tic_grpo().advantage).advantage[:, 0]
    # x = (0.5, 0, 0.05), mean 0.18333, std sqrt((0.1003 + 0.0336 + 0.0178) / 2) = 0.27538
    assert A.tolist() == pytest.approx([1.14993, -0.66575, -0.48418], abs=1e-5)


def test_ratio_is_product_over_rollout():
    loss, gradient = loss_and_gradient([[0.3, -0.4, 0.2], [0.15, 0.0, 0.0]])
    w, other = exp(0.1), exp(0.15)
    assert loss == pytest.approx((-w + other) / 2)
    assert gradient == pytest.approx([-w / 2] * 3 + [other / 2])  # dw / dlogp = w for each token


def test_ratios_are_clipped_above_only_and_for_both_signs_of_the_advantage():
    loss, gradient = loss_and_gradient([[0.1, 0.1, 0.1], [0.5, 0.0, 0.0]])
    assert loss == pytest.approx((-1.2 + 1.2) / 2)  # e^0.3 and e^0.5 are above 1.2
    assert gradient == [0] * 4
    loss, gradient = loss_and_gradient([[-0.5, -0.5, 0.0], [-2.0, 0.0, 0.0]])
    assert loss == pytest.approx((-exp(-1) + exp(-2)) / 2)
    assert gradient == pytest.approx([-exp(-1) / 2] * 3 + [exp(-2) / 2])


def test_fraction_of_clipped_tokens_is_reported():
    pi = perturb_logp(BATCH, [[0.1, 0.1, 0.1], [-0.5, 0.0, 0.0]])
    (clipped,) = tic_grpo().loss.metrics(pi, BATCH).values()
    assert clipped[BATCH.mask].tolist() == [1.0, 1.0, 1.0, 0.0]


def test_ratio_product_does_not_overflow():
    pi = perturb_logp(BATCH, [[80.0, 80.0, 80.0], [-900.0, 0.0, 0.0]])
    assert product(pi, BATCH).flatten().tolist() == pytest.approx([exp(20), exp(-20)])


def test_default_clip_is_that_of_ppo():
    assert tic_grpo().loss.clip_high == 0.2
