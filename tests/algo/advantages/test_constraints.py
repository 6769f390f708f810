"""Rewards gated by feasibility and by the KL to the reference policy."""

from math import exp

import pytest
import torch

from grupo.algo.advantages.constraints import (
    CalibratedReward,
    KLDiscounted,
    KLGated,
    argmax_share,
    best_of_group,
)
from grupo.testing.batches import make_batch

WIN_PROBABILITY = 1 / (1 + exp(-1))  # r = 2 against r_ref = 1: 0.7311
ONES = torch.ones(2, dtype=torch.float64)


def batch_of_two(k=(5.0, 5.0), feasible=(1.0, 0.0)):
    return make_batch(
        group=[0, 0],
        reward=[2.0, 2.0],
        length=[2, 1],
        reward_terms={"feasible": list(feasible), "baseline": [1.0, 1.0]},
        signals={"logp@ref": [[-1 - k[0] / 2] * 2, [-1 - k[1], 0.0]]},
    )


def test_calibrated_reward_is_0_for_infeasible_rollouts():
    assert CalibratedReward()(batch_of_two().reward, batch_of_two()).tolist() == pytest.approx(
        [WIN_PROBABILITY, 0.0]
    )


def test_feasibility_below_1_counts_as_infeasible():
    batch = batch_of_two(feasible=(1.0, 0.5))
    assert CalibratedReward()(batch.reward, batch)[1] == 0


def test_kl_discounted_reward_decreases_with_the_log_ratio():
    near = KLDiscounted(10.0)(ONES, batch_of_two(k=(5.0, 12.0)))
    assert near.tolist() == pytest.approx([0.5, 0.0])
    closer = KLDiscounted(10.0)(ONES, batch_of_two(k=(-5.0, 0.0)))
    assert closer.tolist() == pytest.approx([1.5, 1.0])


def test_kl_gated_reward_is_0_beyond_max_kl():
    assert KLGated(10.0)(3 * ONES, batch_of_two(k=(10.0, 10.5))).tolist() == [3.0, 0.0]


def test_tied_best_rollouts_share_the_reward():
    batch = make_batch(group=[0, 0, 0, 1])
    assert best_of_group(torch.tensor([2.0, 2.0, 1.0, -3.0]), batch).tolist() == [
        1.0,
        1.0,
        0.0,
        -3.0,
    ]


def test_argmax_share_without_candidates_is_0():
    no_candidates = torch.zeros(2).bool()
    assert argmax_share(torch.tensor([2.0, 1.0]), no_candidates, torch.tensor([0, 0])).tolist() == [
        0.0,
        0.0,
    ]
