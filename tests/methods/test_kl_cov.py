from math import exp

import pytest
import torch

from grupo.algo.losses.entropy_aware import logp_advantage_covariance
from grupo.algo.minibatches import Updates
from grupo.methods.kl_cov import kl_cov
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch([0, 0], length=[2, 1], advantage=[1.0, -2.0], logp=0.0)
MOVES = [[-0.3, -1.5], [-0.6, 50.0]]  # log pi: mean -0.8; A: mean 0


def test_covariance_is_centred_over_all_tokens():
    cov = logp_advantage_covariance(perturb_logp(BATCH, MOVES), BATCH)
    assert cov[BATCH.mask].tolist() == pytest.approx([0.5, -0.7, -0.4])


def test_highest_covariance_token_is_penalized():
    method, pi = kl_cov(penalized_fraction=0.2), perturb_logp(BATCH, MOVES)  # 0.2 x 3 tokens: one
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    assert loss.item() == pytest.approx((-exp(-0.3) + 0.3 - exp(-1.5) + 2 * exp(-0.6)) / 3)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    expected = [-exp(-0.3) - 1.0, -exp(-1.5), 2 * exp(-0.6)]  # the slope of |log R| is -1
    assert gradient[BATCH.mask].tolist() == pytest.approx([g / 3 for g in expected])


def test_penalized_token_count_is_fraction_with_minimum_one():
    pi = perturb_logp(BATCH, MOVES)
    for fraction, penalized in ((1e-9, 1), (0.34, 2), (1.0, 3)):
        free, bound = (
            kl_cov(penalized_fraction=fraction, kl_coef=b).loss(pi, BATCH) for b in (0.0, 1.0)
        )
        assert int((free != bound)[BATCH.mask].sum()) == penalized


def test_penalty_is_computed_in_double_precision():
    pi = perturb_logp(BATCH, MOVES)
    free, bound = (kl_cov(penalized_fraction=1.0, kl_coef=b).loss(pi, BATCH) for b in (0.0, 0.1))
    # 0.1 in single precision is off by 1e-9
    assert (bound - free)[0, 0].item() == pytest.approx(0.1 * 0.3, rel=1e-14)


def test_defaults_match_release():
    assert (kl_cov().loss.penalized_fraction, kl_cov().loss.kl_coef) == (2e-4, 1.0)
    assert kl_cov().requires.coupled_rows


def test_step_has_8_minibatches():
    assert kl_cov().updates == Updates(minibatches=8)
