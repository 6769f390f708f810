"""SeeUPO: turn ratios, factors carried from later turns, and gradients."""

from math import exp, log, sqrt

import pytest
import torch

from grupo.algo.advantages.turn_table import batch_turn_mean
from grupo.algo.losses.turn_level import ReverseClip
from grupo.algo.minibatches import Updates
from grupo.methods.seeupo import seeupo
from grupo.testing.batches import make_batch, perturb_logp


def rollout(moves, turn, advantage=1.0):
    batch = make_batch(group=[0], length=[len(moves)], turn=[turn], advantage=[advantage])
    pi = perturb_logp(batch, [moves])
    loss = ReverseClip(0.2)(pi, batch)
    return loss[0].tolist(), torch.autograd.grad(loss.sum(), pi.logp)[0][0].tolist()


def test_earlier_turn_is_scaled_by_ratios_of_later_turns():
    loss, gradient = rollout([log(1.3), log(1.1)], [0, 1])
    assert loss == pytest.approx([-1.2 * 1.1, -1.1])  # min(1.43, 1.32)
    assert gradient == pytest.approx([0.0, -1.1])  # M is a constant, and 1.3 is clipped


def test_carried_ratio_is_clipped():
    loss, _ = rollout([0.0, log(1.5)], [0, 1])
    assert loss == pytest.approx([-1.2, -1.2])


def test_product_is_clipped_at_every_turn():
    loss, _ = rollout([0.0, log(0.9), log(1.2), log(1.2)], [0, 1, 2, 3])
    # from the end: 1.2; 1.2 x 1.2 clipped to 1.2; 0.9 x 1.2 = 1.08
    assert loss == pytest.approx([-1.08, -0.9 * 1.2, -1.2 * 1.2, -1.2])


def test_turn_ratio_is_geometric_mean():
    loss, gradient = rollout([0.1, 0.2, -0.1], [0, 0, 1], advantage=-1.0)
    assert loss == pytest.approx([exp(0.15) * exp(-0.1)] * 2 + [exp(-0.1)])
    # the sum over a turn's two actions: each moves the mean by half
    assert gradient == pytest.approx([exp(0.05), exp(0.05), exp(-0.1)])


def test_negative_actions_far_below_clip_have_no_gradient():
    loss, gradient = rollout([-0.5], [0], advantage=-1.0)
    assert loss == pytest.approx([0.8])
    assert gradient == [0.0]


def test_advantages_are_standardized_over_batch():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 4.0, 0.0])
    A = batch.with_advantage(seeupo().advantage).advantage.flatten().tolist()
    deviation = sqrt((0.25 + 0.25 + 4 + 4) / 3)  # of 0.5, -0.5, 2, -2, by n - 1
    expected = [0.5 / deviation, -0.5 / deviation, 2 / deviation, -2 / deviation]
    assert pytest.approx(expected, rel=1e-6) == A


def test_advantage_is_zero_when_rewards_are_equal():
    batch = make_batch(group=[0, 0], reward=[1.0, 1.0]).with_advantage(seeupo().advantage)
    assert batch.advantage.abs().max() == 0


def test_defaults_match_paper():
    assert seeupo().updates == Updates(epochs=10)
    assert seeupo().aggregation is batch_turn_mean
