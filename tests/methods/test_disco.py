from math import exp, log

import pytest
import torch

from grupo.algo.losses import DiscriminativeLoss, TrustRegion
from grupo.algo.losses.contrastive import mean_ratio
from grupo.algo.minibatches import Updates
from grupo.methods.disco import disco
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch([0, 0, 0], [1.0, 0.0, 0.0], logp=0.0)


def learn(method, moves):
    pi = perturb_logp(BATCH, moves)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()


def test_correct_answers_are_compared_with_hard_incorrect_ones():
    moves = [[-0.9], [-1.1], [-1.0]]
    loss, gradient = learn(disco(score_temperature=1.0, trust_region_coef=0.0), moves)
    assert loss == pytest.approx(0.9 + log((exp(-1.1) + exp(-1.0)) / 2))
    hard = 1 / (1 + exp(-0.1))  # 0.525
    assert gradient == pytest.approx([-1.0, 1 - hard, hard])


def test_ratio_score():
    ratios = [0.9, 1.1, 1.0]
    method = disco(trust_region_coef=0.0).replace(loss=DiscriminativeLoss(mean_ratio, tau=1.0))
    loss, _ = learn(method, [[log(r)] for r in ratios])
    assert loss == pytest.approx(-(0.9 - log((exp(1.1) + exp(1.0)) / 2)))  # 0.1512


def test_leaving_the_trust_region_is_penalised():
    with_penalty, gradient = learn(
        disco(trust_region_coef=1e3, max_kl=1e-4), [[-2e-4]] * 3
    )  # K = 2e-4
    without, free = learn(disco(trust_region_coef=0.0), [[-2e-4]] * 3)
    assert with_penalty - without == pytest.approx(500 * 1e-8)
    extra = [g - f for g, f in zip(gradient, free, strict=True)]
    assert extra == pytest.approx([-0.1 / 3] * 3)  # beta (K - delta) / 3


def test_groups_without_both_outcomes_stay_in_the_denominator():
    method = disco(trust_region_coef=0.0)
    batch = make_batch([0, 0, 1, 1], [1.0, 0.0, 1.0, 1.0], logp=0.0)
    pi = perturb_logp(batch, [[-0.2], [-0.5], [-0.1], [-0.1]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-(0.3) / 2)


def test_defaults_are_the_released_ones():
    assert disco().loss.left == DiscriminativeLoss(tau=10.0)
    assert disco().loss.right == TrustRegion(beta=1000.0, delta=1e-4)


def test_update_plan_is_the_released_one():
    assert disco().updates == Updates(minibatches=4)
