"""Rewards that judges allow, and that fade with the distance from the reference."""

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

BEATS = 1 / (1 + exp(-1))  # r = 2 against r_ref = 1: 0.7311
ONES = torch.ones(2, dtype=torch.float64)


def answers(k=(5.0, 5.0), feasible=(1.0, 0.0)):
    return make_batch(
        group=[0, 0],
        reward=[2.0, 2.0],
        length=[2, 1],
        reward_terms={"feasible": list(feasible), "baseline": [1.0, 1.0]},
        signals={"logp@ref": [[-1 - k[0] / 2] * 2, [-1 - k[1], 0.0]]},
    )


def test_the_infeasible_earns_nothing():
    assert CalibratedReward()(answers().reward, answers()).tolist() == pytest.approx([BEATS, 0.0])


def test_a_judge_in_doubt_is_a_judge_against():
    batch = answers(feasible=(1.0, 0.5))
    assert CalibratedReward()(batch.reward, batch)[1] == 0


def test_far_from_the_reference_the_reward_fades():
    near = KLDiscounted(10.0)(ONES, answers(k=(5.0, 12.0)))
    assert near.tolist() == pytest.approx([0.5, 0.0])
    back = KLDiscounted(10.0)(ONES, answers(k=(-5.0, 0.0)))
    assert back.tolist() == pytest.approx([1.5, 1.0])


def test_within_the_limit_the_reward_is_whole_and_beyond_it_nothing():
    assert KLGated(10.0)(3 * ONES, answers(k=(10.0, 10.5))).tolist() == [3.0, 0.0]


def test_the_best_of_a_group_share():
    batch = make_batch(group=[0, 0, 0, 1])
    assert best_of_group(torch.tensor([2.0, 2.0, 1.0, -3.0]), batch).tolist() == [
        1.0,
        1.0,
        0.0,
        -3.0,
    ]


def test_where_nobody_is_among_them_nobody_is_the_greatest():
    nobody = torch.zeros(2).bool()
    assert argmax_share(torch.tensor([2.0, 1.0]), nobody, torch.tensor([0, 0])).tolist() == [
        0.0,
        0.0,
    ]
