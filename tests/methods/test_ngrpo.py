from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.types import Group, Rollout, Task
from grupo.methods.ngrpo import DropSolvedGroups, ngrpo
from grupo.testing.batches import make_batch


def advantages(reward):
    batch = make_batch(group=[0] * len(reward), reward=reward)
    return ngrpo().advantage(batch.reward, batch).tolist()


def test_all_wrong_group_has_negative_advantage():
    # 8 zeros and a virtual 1: mean 1/9, variance (8 / 81 + 64 / 81) / 8 = 1/9
    assert advantages([0.0] * 8) == pytest.approx([-1 / 3] * 8, rel=1e-5)
    assert advantages([0.0] * 3) == pytest.approx([-1 / sqrt(4)] * 3, rel=1e-5)


def test_virtual_reward_lowers_advantages_in_mixed_group():
    # 1, 0, 0 and a virtual 1: mean 1/2, deviation sqrt(4 / 4 / 3)
    s = sqrt(1 / 3)
    assert advantages([1.0, 0.0, 0.0]) == pytest.approx([0.5 / s, -0.5 / s, -0.5 / s], rel=1e-5)


def test_all_correct_group_has_zero_advantage():
    assert advantages([1.0] * 8) == [0.0] * 8


def test_single_failure_is_compared_with_virtual_success():
    assert advantages([0.0]) == pytest.approx([-0.5 / sqrt(0.5)], rel=1e-5)


def test_filter_drops_all_correct_and_keeps_all_wrong_groups():
    def group(*rewards):
        return Group(Task("t", "?"), tuple(Rollout(reward=r) for r in rewards))

    wrong, mixed, right = group(0.0, 0.0), group(0.0, 1.0), group(1.0, 1.0)
    assert DropSolvedGroups()([wrong, mixed, right]) == [wrong, mixed]


def test_matches_reference_implementation():
    # nangongrui-ngr/NGRPO @ e7a3804, verl/trainer/ppo/core_algos.py,
    # compute_ngrpo_outcome_advantage; inputs as below
    reward = [0.0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0.3, 0.9, 0, 0.5]
    batch = make_batch(group=[i // 4 for i in range(16)], reward=reward, length=[1, 2, 3, 1] * 4)
    expected = [-0.4472125955] * 4 + [0.73029541, -1.095443115, -1.095443115, 0.73029541]
    expected += [0.0] * 4 + [-0.5770150569, 0.8655225854, -1.298283878, -0.09616917615]
    assert ngrpo().advantage(batch.reward, batch).tolist() == pytest.approx(expected, rel=1e-5)


def test_defaults_match_paper():
    method = ngrpo()
    assert (method.loss, method.filter) == (Clip(0.16, 0.24), DropSolvedGroups(1.0))
    assert method.aggregation is token_mean
    assert method.required_signals == frozenset()
