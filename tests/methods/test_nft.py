from math import log

import pytest
import torch

from grupo.algo.filters import keep_nonzero_std
from grupo.algo.minibatches import Updates
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.nft import NegativeAwareLoss, nft
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(loss, ratios, rewards):
    batch = make_batch([0] * len(rewards), rewards)
    pi = perturb_logp(batch, [[log(r)] for r in ratios])
    value = loss(pi, batch)
    return value.flatten().tolist(), torch.autograd.grad(value.sum(), pi.logp)[0].flatten().tolist()


def test_correct_answers_are_imitated():
    value, gradient = loss_and_gradient(NegativeAwareLoss(), [1.2, 1.0], [1.0, 0.0])  # p = 1/2
    assert value[0] == pytest.approx(-0.5 * log(1.2))
    assert gradient[0] == pytest.approx(-0.5)


def test_wrong_answers_use_implicit_negative_policy():
    value, gradient = loss_and_gradient(NegativeAwareLoss(), [1.0, 0.8], [1.0, 0.0])
    # (1 - 0.4) / 0.5 = 1.2; its slope in R is -1, in log R -0.8
    assert value[1] == pytest.approx(-0.5 * log(1.2))
    assert gradient[1] == pytest.approx(0.5 * 0.8 / 1.2)


def test_negative_ratio_below_one_is_clamped_with_straight_through_gradient():
    value, gradient = loss_and_gradient(NegativeAwareLoss(), [1.0, 1.2], [1.0, 0.0])
    assert value[1] == 0  # (1 - 0.6) / 0.5 = 0.8
    assert gradient[1] == pytest.approx(0.5 * 1.2)
    value, gradient = loss_and_gradient(NegativeAwareLoss(), [1.0, 5.0], [1.0, 0.0])
    assert value[1] == 0  # even where it would be negative
    assert gradient[1] == pytest.approx(0.5 * 5.0)


def test_on_policy_gradient_matches_dr_grpo():
    rewards = [1.0, 0.0, 0.0, 0.0]
    batch = make_batch([0] * 4, rewards, length=[1, 2, 1, 1])
    gradients = []
    for method in (nft(), dr_grpo(max_length=1000)):
        batch_with_advantage, pi = (
            batch.with_advantage(method.advantage),
            perturb_logp(batch, [[0.0, 0.0]] * 4),
        )
        loss = (
            method.aggregation(batch_with_advantage) * method.loss(pi, batch_with_advantage)
        ).sum()
        gradients.append(torch.autograd.grad(loss, pi.logp)[0][batch.mask].tolist())
    assert gradients[0] == pytest.approx(gradients[1])
    assert gradients[0][0] == pytest.approx(-0.75 / 4000)


def test_uniform_groups_are_dropped():
    assert nft().filter is keep_nonzero_std
    value, gradient = loss_and_gradient(NegativeAwareLoss(), [1.0, 1.0], [0.0, 0.0])
    assert gradient == pytest.approx([0.02, 0.02])  # p is clamped to 0.02: the gradient is finite
    assert value == pytest.approx([0.0, 0.0])


def test_step_has_16_minibatches():
    assert nft().updates == Updates(minibatches=16)
