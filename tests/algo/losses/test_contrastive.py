"""Contrastive losses of one success and two failures, computed by hand."""

from math import exp, log

import pytest
import torch

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.aggregation import group_mean, token_mean
from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.algo.losses.contrastive import mean_logp, mean_per_rollout, mean_ratio, rollout_log_ratio
from grupo.testing.batches import make_batch, perturb_logp, rich_batch

BATCH = make_batch([0, 0, 0], reward=[1.0, 0.0, 0.0], length=[2, 1, 1], logp=0.0)
PI = perturb_logp(BATCH, [[-0.5, -1.3], [-1.1, 7.0], [-1.0, 7.0]])


def value_and_gradient(loss, aggregation, pi=PI, batch=BATCH):
    value = (aggregation(batch) * loss(pi, batch)).sum()
    return value.item(), torch.autograd.grad(value, pi.logp)[0]


def test_per_rollout_scores_ignore_masked_tokens():
    assert rollout_log_ratio(PI, BATCH).tolist() == pytest.approx([-1.8, -1.1, -1.0])
    assert mean_logp(PI, BATCH).tolist() == pytest.approx([-0.9, -1.1, -1.0])
    assert mean_ratio(PI, BATCH)[0].item() == pytest.approx((exp(-0.5) + exp(-1.3)) / 2)


def test_per_rollout_scores_sum_all_rows():
    batch = rich_batch()  # rows 2 and 3 are rollout 2
    ones = torch.ones_like(batch.old_logp)
    assert sum_per_rollout(ones, batch)[2] == batch.mask[2].sum() + batch.mask[3].sum()
    assert mean_per_rollout(ones, batch).tolist() == pytest.approx([1.0] * len(batch.reward))


def test_discriminative_loss_compares_successes_with_hard_failures():
    loss, gradient = value_and_gradient(DiscriminativeLoss(tau=1.0), group_mean)
    # J = -0.9 - log((e^-1.1 + e^-1.0) / 2)
    assert loss == pytest.approx(0.9 + log((exp(-1.1) + exp(-1.0)) / 2))
    hardest_share = exp(-1.0) / (exp(-1.1) + exp(-1.0))
    assert gradient[BATCH.mask].tolist() == pytest.approx(
        [-0.5, -0.5, 1 - hardest_share, hardest_share]
    )


def test_discriminative_loss_is_0_without_success_or_failure():
    for reward in ([0.0] * 3, [1.0] * 3):
        batch = make_batch([0, 0, 0], reward=reward, length=[2, 1, 1], logp=0.0)
        loss, gradient = value_and_gradient(DiscriminativeLoss(), group_mean, batch=batch)
        assert loss == 0
        assert gradient.eq(0).all()


def test_discriminative_loss_with_large_tau_compares_with_the_mean_failure():
    loss, _ = value_and_gradient(DiscriminativeLoss(tau=1e7), group_mean)
    assert loss == pytest.approx(0.9 - 1.05, abs=1e-6)


def test_trust_region_is_0_up_to_delta():
    moves = [[-0.3, -0.1], [-0.2, 0.0], [-0.2, 0.0]]
    pi = perturb_logp(BATCH, moves)  # K = 0.8 / 4
    loss, gradient = value_and_gradient(TrustRegion(beta=10.0, delta=0.1), token_mean, pi)
    assert loss == pytest.approx(5 * 0.1**2)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-10 * 0.1 / 4] * 4)
    loss, gradient = value_and_gradient(
        TrustRegion(beta=10.0, delta=0.3), token_mean, perturb_logp(BATCH, moves)
    )
    assert loss == 0
    assert gradient.eq(0).all()
