"""Losses of value heads: values and gradients."""

import pytest
import torch

from grupo.algo.losses import ClippedValueLoss, OutcomeValueLoss, ValueLoss
from grupo.core.batch import Signals
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch


def values(*value):
    return Signals(value=torch.tensor([value], dtype=torch.float64).T.requires_grad_())


def batch_of_two():
    return make_batch(group=[0, 0], signals={"value": [[0.0], [0.0]]}, advantage=[1.0, 1.0])


def test_value_loss_targets_the_old_value_plus_the_advantage():
    pi = values(0.25, 1.5)
    loss = ValueLoss()(pi, batch_of_two())  # R = 1
    assert loss.flatten().tolist() == pytest.approx([0.75**2, 0.5**2])
    slope = torch.autograd.grad(loss.sum(), pi["value"])[0]
    assert slope.flatten().tolist() == pytest.approx([-1.5, 1.0])


def test_old_and_new_value_are_declared():
    for loss in (ValueLoss(), ClippedValueLoss()):
        assert loss.requires.signals == loss.requires.recomputed_signals == {"value"}
    assert not OutcomeValueLoss().requires.signals


def test_clipped_value_loss_has_no_gradient_beyond_the_clip():
    pi = values(0.5, 1.5)
    loss = ClippedValueLoss(0.2)(pi, batch_of_two())  # R = 1: clipped at 0.2 in both
    assert loss.flatten().tolist() == pytest.approx([0.8**2, 0.8**2])
    slope = torch.autograd.grad(loss.sum(), pi["value"])[0]
    assert slope.abs().max() == 0


def test_clipped_value_loss_equals_value_loss_within_the_clip():
    pi = values(0.1, -0.1)
    assert torch.equal(ClippedValueLoss(0.2)(pi, batch_of_two()), ValueLoss()(pi, batch_of_two()))


def test_outcome_value_loss_targets_the_reward_of_the_rollout():
    batch = make_batch(group=[0, 0], reward=[1.0, -1.0]).select_rows(torch.tensor([1, 0]))
    loss = OutcomeValueLoss()(values(0.5, 0.5), batch)
    assert loss.flatten().tolist() == pytest.approx([2.25, 0.25])


def test_value_losses_require_only_the_value():
    assert {
        merged_requires(ValueLoss()).all_signals,
        merged_requires(ClippedValueLoss()).all_signals,
        merged_requires(OutcomeValueLoss()).all_signals,
    } == {frozenset({"value"})}
