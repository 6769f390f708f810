"""Squares that a value head learns from: their minima, and where they do not move it."""

import pytest
import torch

from grupo.algo.losses import ClippedValueLoss, OutcomeValueLoss, ValueLoss
from grupo.core.batch import Signals
from grupo.testing.batches import make_batch


def says(*value):
    return Signals(value=torch.tensor([value], dtype=torch.float64).T.requires_grad_())


def two():
    return make_batch(group=[0, 0], signals={"value": [[0.0], [0.0]]}, advantage=[1.0, 1.0])


def test_the_value_is_drawn_to_the_old_one_plus_the_advantage():
    pi = says(0.25, 1.5)
    loss = ValueLoss()(pi, two())  # R = 1
    assert loss.flatten().tolist() == pytest.approx([0.75**2, 0.5**2])
    slope = torch.autograd.grad(loss.sum(), pi["value"])[0]
    assert slope.flatten().tolist() == pytest.approx([-1.5, 1.0])


def test_a_clipped_value_may_not_run_ahead():
    pi = says(0.5, 1.5)
    loss = ClippedValueLoss(0.2)(pi, two())  # R = 1: held at 0.2 in both
    assert loss.flatten().tolist() == pytest.approx([0.8**2, 0.8**2])
    slope = torch.autograd.grad(loss.sum(), pi["value"])[0]
    assert slope.abs().max() == 0


def test_a_value_within_the_clip_is_fitted_as_if_there_were_none():
    pi = says(0.1, -0.1)
    assert torch.equal(ClippedValueLoss(0.2)(pi, two()), ValueLoss()(pi, two()))


def test_the_outcome_is_that_of_the_rows_rollout():
    batch = make_batch(group=[0, 0], reward=[1.0, -1.0]).select_rows(torch.tensor([1, 0]))
    assert OutcomeValueLoss()(says(0.5, 0.5), batch).flatten().tolist() == pytest.approx(
        [2.25, 0.25]
    )


def test_each_needs_the_value_alone():
    assert {
        ValueLoss().required_signals,
        ClippedValueLoss().required_signals,
        OutcomeValueLoss().required_signals,
    } == {frozenset({"value"})}
