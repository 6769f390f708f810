"""Contrasts of two rollouts that succeeded and two that failed, by hand."""

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


def learn(loss, weigh, pi=PI, batch=BATCH):
    value = (weigh(batch) * loss(pi, batch)).sum()
    return value.item(), torch.autograd.grad(value, pi.logp)[0]


def test_numbers_of_a_rollout_ignore_what_is_masked():
    assert rollout_log_ratio(PI, BATCH).tolist() == pytest.approx([-1.8, -1.1, -1.0])
    assert mean_logp(PI, BATCH).tolist() == pytest.approx([-0.9, -1.1, -1.0])
    assert mean_ratio(PI, BATCH)[0].item() == pytest.approx((exp(-0.5) + exp(-1.3)) / 2)


def test_a_rollout_of_two_rows_is_added_up():
    batch = rich_batch()  # rows 2 and 3 are rollout 2
    ones = torch.ones_like(batch.old_logp)
    assert sum_per_rollout(ones, batch)[2] == batch.mask[2].sum() + batch.mask[3].sum()
    assert mean_per_rollout(ones, batch).tolist() == pytest.approx([1.0] * len(batch.reward))


def test_discriminate_compares_successes_with_the_hardest_failures():
    loss, gradient = learn(DiscriminativeLoss(tau=1.0), group_mean)
    # J = -0.9 - log((e^-1.1 + e^-1.0) / 2)
    assert loss == pytest.approx(0.9 + log((exp(-1.1) + exp(-1.0)) / 2))
    hard = exp(-1.0) / (exp(-1.1) + exp(-1.0))
    assert gradient[BATCH.mask].tolist() == pytest.approx([-0.5, -0.5, 1 - hard, hard])


def test_discriminate_says_nothing_of_a_group_without_success_or_failure():
    for reward in ([0.0] * 3, [1.0] * 3):
        batch = make_batch([0, 0, 0], reward=reward, length=[2, 1, 1], logp=0.0)
        loss, gradient = learn(DiscriminativeLoss(), group_mean, batch=batch)
        assert loss == 0
        assert gradient.eq(0).all()


def test_a_large_tau_compares_with_the_mean_failure():
    loss, _ = learn(DiscriminativeLoss(tau=1e7), group_mean)
    assert loss == pytest.approx(0.9 - 1.05, abs=1e-6)


def test_the_trust_region_is_free_until_delta():
    moves = [[-0.3, -0.1], [-0.2, 0.0], [-0.2, 0.0]]
    pi = perturb_logp(BATCH, moves)  # K = 0.8 / 4
    loss, gradient = learn(TrustRegion(beta=10.0, delta=0.1), token_mean, pi)
    assert loss == pytest.approx(5 * 0.1**2)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-10 * 0.1 / 4] * 4)
    loss, gradient = learn(
        TrustRegion(beta=10.0, delta=0.3), token_mean, perturb_logp(BATCH, moves)
    )
    assert loss == 0
    assert gradient.eq(0).all()
