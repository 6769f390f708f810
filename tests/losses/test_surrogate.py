from math import exp

import pytest
import torch

from grupo.losses import Clip, Reinforce
from grupo.ratios import sequence
from grupo.testing import batch_of, moved

# one action per row: ratios 1.6487, 0.6065, 1.0513 under an advantage of 2, then of -2
BATCH = batch_of(group=[0] * 6, advantage=[2.0, 2.0, 2.0, -2.0, -2.0, -2.0])
MOVES = [[0.5], [-0.5], [0.05], [0.5], [-0.5], [0.05]]


def test_clip_takes_the_lesser_of_ratio_and_clipped_ratio():
    loss = Clip(low=0.2, high=0.28)(moved(BATCH, MOVES), BATCH).flatten().tolist()
    expected = [
        -2 * 1.28,  # A > 0, r above 1 + high: clipped
        -2 * exp(-0.5),  # A > 0, r below 1 - low: the minimum is r
        -2 * exp(0.05),
        2 * exp(0.5),  # A < 0, r above: the minimum is r
        2 * 0.8,  # A < 0, r below: clipped
        2 * exp(0.05),
    ]
    assert loss == pytest.approx(expected)


def test_the_gradient_of_clip_is_minus_ratio_times_advantage_unless_clipped():
    pi = moved(BATCH, MOVES)
    Clip(low=0.2, high=0.28)(pi, BATCH).sum().backward()
    assert pi.logp.grad is not None
    expected = [0, -2 * exp(-0.5), -2 * exp(0.05), 2 * exp(0.5), 0, 2 * exp(0.05)]
    assert pi.logp.grad.flatten().tolist() == pytest.approx(expected)


def test_clip_reports_which_actions_it_clipped():
    report = Clip(low=0.2, high=0.28).report(moved(BATCH, MOVES), BATCH)
    assert report["clip/high"].flatten().tolist() == [1, 0, 0, 0, 0, 0]
    assert report["clip/low"].flatten().tolist() == [0, 0, 0, 0, 1, 0]


def test_clip_of_a_sequence_ratio_shares_the_gradient_among_the_row():
    batch = batch_of(group=[0], length=[2], advantage=[1.0])
    pi = moved(batch, [[0.2, -0.4]])  # s = exp((0.2 - 0.4) / 2) = exp(-0.1)
    loss = Clip(0.2, 0.2, sequence)(pi, batch)
    loss.sum().backward()
    assert loss.flatten().tolist() == pytest.approx([-exp(-0.1)] * 2)
    assert pi.logp.grad is not None  # two actions' losses, each with ds/dlogp = s / 2
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-exp(-0.1)] * 2)


def test_on_policy_clip_has_the_gradient_of_reinforce():
    slopes = []
    for loss in (Clip(), Reinforce()):
        pi = moved(BATCH, [[0.0]] * 6)
        loss(pi, BATCH).sum().backward()
        assert pi.logp.grad is not None
        slopes.append(pi.logp.grad)
    assert torch.equal(*slopes)
    assert slopes[0].flatten().tolist() == [-2, -2, -2, 2, 2, 2]


def test_reinforce_is_minus_advantage_times_logp():
    batch = batch_of(group=[0, 0], advantage=[0.5, -3.0], logp=-2.0)
    assert Reinforce()(moved(batch, [[0.0], [0.0]]), batch).tolist() == [[1.0], [-6.0]]
