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


def test_ratio_is_product_over_rollout():
    loss, gradient = loss_and_gradient([[0.3, -0.4, 0.2], [0.15, 0.0, 0.0]])
    w, other = exp(0.1), exp(0.15)
    assert loss == pytest.approx((-w + other) / 2)
    assert gradient == pytest.approx([-w / 2] * 3 + [other / 2])  # dw / dlogp = w for each token


def test_small_token_changes_accumulate_and_are_clipped_together():
    loss, gradient = loss_and_gradient(
        [[0.1, 0.1, 0.1], [-0.5, 0.0, 0.0]]
    )  # e^0.3 > 1.2, e^-0.5 < 0.8
    assert loss == pytest.approx((-1.2 + 0.8) / 2)
    assert gradient == [0] * 4


def test_ratio_product_does_not_overflow():
    pi = perturb_logp(BATCH, [[80.0, 80.0, 80.0], [-900.0, 0.0, 0.0]])
    assert product(pi, BATCH).flatten().tolist() == pytest.approx([exp(20), exp(-20)])


def test_default_clip_matches_ppo():
    assert (tic_grpo().loss.clip_low, tic_grpo().loss.clip_high) == (0.2, 0.2)
    assert tic_grpo().loss.ratio is product
