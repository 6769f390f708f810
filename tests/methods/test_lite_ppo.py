from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.lite_ppo import ScaleByBatchStd, lite_ppo
from grupo.testing.batches import make_batch


def test_advantage_uses_group_mean_and_batch_std():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 0.0])
    s = sqrt((0 + 1 + 4 + 1) / 3)  # rewards 1, 0, 3, 0: mean 1
    A = lite_ppo().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.5 / s, -0.5 / s, 1.5 / s, -1.5 / s], rel=1e-5)


def test_batch_std_weights_rollouts_equally():
    short = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 0.0])
    long = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 0.0], length=[1, 9, 2, 4])
    A, A_long = (lite_ppo().advantage(b.reward, b) for b in (short, long))
    assert A.tolist() == A_long.tolist()


def test_advantage_is_zero_for_equal_rewards_or_single_rollout():
    flat = make_batch(group=[0, 0, 1], reward=[1.0, 1.0, 1.0])
    lone = make_batch(group=[0], reward=[7.0])
    assert lite_ppo().advantage(flat.reward, flat).tolist() == [0, 0, 0]
    assert lite_ppo().advantage(lone.reward, lone).tolist() == [0]


def test_declares_whole_batch_requirement():
    assert ScaleByBatchStd().requires.whole_batch


def test_defaults_match_paper():
    assert lite_ppo().loss == Clip(0.2, 0.2)
    assert lite_ppo().aggregation is token_mean
    assert lite_ppo().requires.all_signals == frozenset()
