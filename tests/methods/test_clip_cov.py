from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.clip_cov import DropHighCovariance, clip_cov
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch([0, 0], length=[2, 2], advantage=[1.0, -1.0], logp=0.0)
# log pi: mean -1.5; A: mean 0; covariances 1.4, 0.5, 0.4, 1.5
MOVES = [[-0.1, -1.0], [-1.9, -3.0]]


def test_only_tokens_in_the_covariance_range_are_dropped():
    drop = DropHighCovariance(drop_fraction=1.0, min_covariance=1.0, max_covariance=1.45)
    assert drop(perturb_logp(BATCH, MOVES), BATCH).tolist() == [[0, 1], [1, 1]]
    none = DropHighCovariance(drop_fraction=1.0, min_covariance=2.0, max_covariance=5.0)
    assert none(perturb_logp(BATCH, MOVES), BATCH).tolist() == [[1, 1], [1, 1]]


def test_dropped_tokens_have_no_gradient_and_count_in_the_mean():
    method = clip_cov(drop_fraction=1.0, min_covariance=1.0, max_covariance=1.45, clip_eps=0.9)
    pi = perturb_logp(BATCH, MOVES)
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    # R = e^-1 for A > 0; e^-1.9 for A < 0; e^-3 is clipped at 0.1
    assert loss.item() == pytest.approx((-exp(-1.0) + exp(-1.9) + 0.1) / 4)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    expected = [0.0, -exp(-1.0) / 4, exp(-1.9) / 4, 0.0]
    assert gradient.flatten().tolist() == pytest.approx(expected)


def large_batch():
    old = -torch.rand(100, 100, generator=torch.Generator().manual_seed(0)).double()
    batch = make_batch([0] * 100, length=[100] * 100, advantage=[float(i % 2) for i in range(100)])
    return batch.__class__(**{**vars(batch), "old_logp": old})


def test_drop_fraction_sets_the_number_of_dropped_tokens_reproducibly():
    batch = large_batch()
    pi = perturb_logp(batch, [[0.0] * 100] * 100)
    drop = DropHighCovariance(drop_fraction=0.01, min_covariance=0.0, max_covariance=5.0)
    drawn = drop(pi, batch) == 0
    assert int(drawn.sum()) == 100  # 1 % of 10,000
    assert torch.equal(drawn, drop(pi, batch) == 0)
    halves = drawn.sum(1)[::2].sum().item(), drawn.sum(1)[1::2].sum().item()
    assert min(halves) > 30  # the draw is fair: about 50 each


def test_defaults_are_the_released_ones():
    assert clip_cov().loss.weight == DropHighCovariance(
        drop_fraction=2e-4, min_covariance=1.0, max_covariance=5.0
    )
    assert clip_cov().requires.coupled_rows


def test_update_plan_is_the_released_one():
    assert clip_cov().updates == Updates(minibatches=8)
