from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.m2po import SecondMomentMask, m2po
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(by, advantage, budget=0.04):
    batch = make_batch(group=[0] * len(by), advantage=advantage)
    pi = perturb_logp(batch, [[d] for d in by])
    loss = SecondMomentMask(budget)(pi, batch)
    loss.sum().backward()
    assert pi.logp.grad is not None
    return loss.flatten().tolist(), pi.logp.grad.flatten().tolist()


def test_only_outlier_tokens_are_masked():
    # moments 0.01, 0.0625, 0.25: means 0.01, 0.036, 0.1075; r = 1.28 is above PPO's 1.2 and stays
    loss, gradient = loss_and_gradient([0.1, 0.25, 0.5], [1.0, 1.0, 1.0])
    assert loss == pytest.approx([-exp(0.1), -exp(0.25), 0])
    assert gradient == pytest.approx([-exp(0.1), -exp(0.25), 0])


def test_tokens_moving_against_advantage_are_kept_and_not_counted():
    loss, _ = loss_and_gradient([-2.0, 2.0, 0.1, -0.1], [1.0, -1.0, 1.0, -1.0])
    assert loss == pytest.approx([-exp(-2), exp(2), -exp(0.1), exp(-0.1)])


def test_equal_second_moments_are_masked_together():
    # means of 0.01, 0.09, 0.09: 0.01, 0.05
    loss, _ = loss_and_gradient([0.1, 0.3, -0.3], [1.0, 1.0, -1.0])
    assert loss == pytest.approx([-exp(0.1), 0, 0])
    # means 0.0025, 0.0225, 0.0408 of 0.0025, 0.0425, 0.0775: the second stays
    loss, _ = loss_and_gradient([0.05, 0.0425**0.5, 0.0775**0.5], [1.0, 1.0, 1.0])
    assert loss == pytest.approx([-exp(0.05), -exp(0.0425**0.5), 0])


def test_mask_may_keep_all_or_no_tokens():
    assert loss_and_gradient([0.1, -0.1], [1.0, -1.0])[0] == pytest.approx([-exp(0.1), exp(-0.1)])
    assert loss_and_gradient([0.5, -0.5], [1.0, -1.0])[0] == pytest.approx([0, 0])
    assert torch.isinf(SecondMomentMask().drop_threshold(torch.zeros(0, dtype=torch.float64)))


def test_defaults_match_release():
    assert m2po().loss == SecondMomentMask(max_second_moment=0.04)
    assert m2po().requires.coupled_rows


def test_step_has_4_minibatches():
    assert m2po().updates == Updates(minibatches=4)
