from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.lite_ppo import ScaleByBatchStd, lite_ppo
from grupo.testing.batches import make_batch


def test_the_mean_is_the_groups_and_the_deviation_the_batchs():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 0.0])
    s = sqrt((0 + 1 + 4 + 1) / 3)  # rewards 1, 0, 3, 0: mean 1
    A = lite_ppo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.5 / s, -0.5 / s, 1.5 / s, -1.5 / s], rel=1e-5)


def test_long_answers_do_not_weigh_more_in_the_deviation():
    short = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 0.0])
    long = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 0.0], length=[1, 9, 2, 4])
    A, same = (lite_ppo().advantage(b.reward, b) for b in (short, long))
    assert A.tolist() == same.tolist()


def test_equal_rewards_and_a_lone_rollout_give_no_signal():
    flat = make_batch(group=[0, 0, 1], reward=[1.0, 1.0, 1.0])
    lone = make_batch(group=[0], reward=[7.0])
    assert lite_ppo().advantage(flat.reward, flat).tolist() == [0, 0, 0]
    assert lite_ppo().advantage(lone.reward, lone).tolist() == [0]


def test_declares_that_it_needs_the_whole_batch():
    assert ScaleByBatchStd().needs_whole_batch


def test_the_defaults_are_the_papers():
    assert lite_ppo().loss == Clip(0.2, 0.2)
    assert lite_ppo().aggregation is token_mean
    assert lite_ppo().required_signals == frozenset()
