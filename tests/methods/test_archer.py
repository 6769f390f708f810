from math import exp, log

import pytest
import torch

from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import DualConstraint
from grupo.algo.losses.entropy_aware import high_entropy_mask
from grupo.algo.minibatches import Updates
from grupo.methods.archer import archer
from grupo.testing.batches import make_batch, perturb_logp

ENTROPY = torch.tensor([[0.1, 2.0, 0.3, 0.2, 0.4], [9.0, 9.0, 1.0, 1.0, 1.0]]).double()
BATCH = make_batch([0, 0], length=[5, 1], advantage=[1.0, -1.0])


def signals_with_entropy(first, second):
    pi = perturb_logp(BATCH, [[log(first)] * 5, [log(second)] * 5])
    pi["entropy"] = ENTROPY.clone().requires_grad_()
    return pi


def test_high_entropy_is_relative_to_each_answer():
    # 0.8-quantile of five numbers: 0.4 + 0.2 (2.0 - 0.4) = 0.72
    assert high_entropy_mask(ENTROPY, BATCH).tolist() == [
        [False, True, False, False, False],
        [True] + [False] * 4,
    ]


def test_high_entropy_tokens_have_a_wider_clip_and_no_kl():
    pi = signals_with_entropy(1.4, 0.4)
    loss = archer(kl_coef=0.1).loss(pi, BATCH)
    k3 = 1 / 1.4 + log(1.4) - 1
    assert loss[0, :2].tolist() == pytest.approx([-1.2 + 0.1 * k3, -1.4])
    assert loss[1, 0].item() == pytest.approx(0.5)
    by_logp, by_entropy = torch.autograd.grad(
        loss[BATCH.mask].sum(), [pi.logp, pi["entropy"]], materialize_grads=True, allow_unused=True
    )
    assert by_logp[0, :2].tolist() == pytest.approx([0.1 * (1 - exp(-log(1.4))), -1.4])
    assert by_logp[1, 0] == 0
    assert by_entropy.eq(0).all()


def test_defaults_are_the_released_ones():
    assert archer().loss == DualConstraint(
        0.2, 0.5, kl_coef=0.001, high_entropy_kl_coef=0.0, quantile=0.8
    )
    assert archer().filter is keep_nonzero_std
    assert archer().requires.signals == {"logp@ref"}


def test_update_plan_is_the_released_one():
    assert archer().updates == Updates(epochs=3, minibatches=2)
