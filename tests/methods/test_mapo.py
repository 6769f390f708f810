from math import sqrt

import pytest

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.mapo import MixedScaleAdvantage, mapo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def advantages(reward):
    batch = make_batch(group=[0] * len(reward), reward=reward)
    return MixedScaleAdvantage(eps=0.0)(batch.reward, batch).tolist()


def test_certainty_weight_is_zero_at_half_success():
    assert advantages([1.0, 1.0, 0.0, 0.0]) == [1, 1, -1, -1]  # p = 1/2, l = 0


def test_relative_advantage_weight_grows_with_certainty():
    # p = 1/4, l = 1 - 4/4 * 3/4 = 1/4, m = 1/4, s = sqrt(3)/4
    high = 0.75 * 0.75 / (sqrt(3) / 4) + 0.25 * 0.75 / 0.25
    assert advantages([1.0, 0.0, 0.0, 0.0]) == pytest.approx([high, *[-high / 3] * 3])


def test_single_failure_in_nearly_perfect_group_is_damped():
    # the paper's example: standardised alone 0.9 would get -1.73
    A = advantages([0.9, 1.0, 1.0, 1.0])
    m, s = 0.975, sqrt((0.075**2 + 3 * 0.025**2) / 4)
    assert -0.075 / s == pytest.approx(-1.73, abs=0.005)
    assert A[0] == pytest.approx(0.75 * -0.075 / s + 0.25 * -0.075 / m)  # p = 3/4
    assert A[0] > -1.4


def test_mirrored_groups_are_distinguished():
    low, high = advantages([0.0, 0.1, 0.1, 0.1]), advantages([0.9, 1.0, 1.0, 1.0])
    # no full marks, p = 0: l = 1, A = (r - m) / m
    assert low == pytest.approx([-1.0, *[0.025 / 0.075] * 3])
    assert abs(low[0] - high[0]) > 0.25


def test_advantage_is_zero_for_zero_or_equal_rewards_and_single_rollout():
    batch = make_batch(group=[0, 0, 1, 1, 2], reward=[0.0, 0.0, 1.0, 1.0, 0.5])
    assert mapo().advantage(batch.reward, batch).tolist() == [0, 0, 0, 0, 0]


def test_matches_reference_implementation():
    # WenkeHuang/MAPO @ debcfd3, code/verl/trainer/ray_trainer.py, compute_advantage's GRPOMIXPRO
    # with the two functions of core_algos.py that it mixes; inputs as below. Its deviation is by
    # n - 1: with p 1/2, 3/4 and 0, all, 3/4 and none of A are sqrt(3 / 4) of the values here
    reward = [1.0, 1.0, 0.5, 0.0, 0.9, 1.0, 1.0, 1.0, 0.0, 0.1, 0.1, 0.2]
    batch = make_batch(group=[i // 4 for i in range(12)], reward=reward)
    A = mapo().advantage(batch.reward, batch)
    assert (A[:4] * sqrt(3 / 4)).tolist() == pytest.approx(
        [0.7833478154, 0.7833478154, -0.2611159385, -1.305579692], rel=1e-5
    )
    slip, good = -0.07692299803 / 4, 0.02564099934 / 4  # of this the mean's part
    actual = [(x - y) * sqrt(3 / 4) + y for x, y in zip(A[4:6].tolist(), (slip, good), strict=True)]
    assert actual == pytest.approx([-1.14420825, 0.38140275], rel=1e-5)
    assert A[8:].tolist() == pytest.approx([-0.9999900001, 0, 0, 0.9999900001], rel=1e-5, abs=1e-9)


def test_default_hyperparameters():
    method = mapo()
    assert (method.sampler, method.loss) == (GroupSampler(12), Clip(0.2, 0.2) + 0.01 * KL())
    assert mapo(kl_coef=0.0).requires.all_signals == frozenset()


def test_step_has_4_minibatches():
    assert mapo().updates == Updates(minibatches=4)
