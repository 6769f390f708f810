"""Confucius3-Math's hardness weighting and entropy target, computed by hand."""

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.core.batch import Signals
from grupo.methods.confucius3_math import (
    EntropyTargetLoss,
    confucius3_math,
    hardness_weighted_advantage,
)
from grupo.testing.batches import make_batch


@pytest.mark.parametrize(
    ("reward", "A"),
    [
        ([1, 0, 0, 0], [2.076, -0.692, -0.692, -0.692]),  # mu = -1/2: 1.384 (1.5 and -0.5)
        ([1, 1, 1, 0], [0.564, 0.564, 0.564, -1.692]),  # mu = 1/2: 1.128 (0.5 and -1.5)
        ([1, 1, 0, 0], [1.256, 1.256, -1.256, -1.256]),
        ([1, 1, 1, 1], [0, 0, 0, 0]),
    ],
)
def test_hard_tasks_weigh_more(reward, A):
    batch = make_batch(group=[0] * 4, reward=reward)
    assert hardness_weighted_advantage(batch.reward, batch).tolist() == pytest.approx(A)


def entropy_loss_and_gradient(entropy):
    batch = make_batch(group=[0, 0], length=[1, 2])
    H = torch.tensor(entropy, dtype=torch.float64, requires_grad=True)
    loss = (
        token_mean(batch) * EntropyTargetLoss(0.55)(Signals(logp=batch.old_logp, entropy=H), batch)
    ).sum()
    return loss.item(), torch.autograd.grad(loss, H)[0].tolist()


def test_entropy_loss_pulls_towards_the_target_from_both_sides():
    # means 0.8 and 0.5 over three actions; what stands at the masked place does not count
    loss, gradient = entropy_loss_and_gradient([[0.6, 9.0], [0.8, 1.0]])
    assert loss == pytest.approx(0.25)
    assert gradient == [pytest.approx([1 / 3, 0]), pytest.approx([1 / 3, 1 / 3])]
    loss, gradient = entropy_loss_and_gradient([[0.4, 9.0], [0.5, 0.6]])
    assert loss == pytest.approx(0.05)
    assert gradient == [pytest.approx([-1 / 3, 0]), pytest.approx([-1 / 3, -1 / 3])]


def test_entropy_at_the_target_has_no_gradient():
    loss, gradient = entropy_loss_and_gradient([[0.55, 0.0], [0.55, 0.55]])
    assert loss == pytest.approx(0.0)
    assert gradient == [[0, 0], [0, 0]]


def test_defaults_are_the_reports():
    method = confucius3_math()
    assert method.loss.right.factor == 0.001
    assert method.loss.right.loss == EntropyTargetLoss(0.55)
    assert method.filter is keep_nonzero_std
    assert (method.loss.left.clip_low, method.loss.left.clip_high) == (0.2, 0.28)
