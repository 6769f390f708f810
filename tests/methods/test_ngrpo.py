from math import sqrt

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
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


def test_defaults_match_paper():
    method = ngrpo()
    assert method.updates == Updates(minibatches=4)
    assert (method.loss, method.filter) == (Clip(0.16, 0.24), DropSolvedGroups(1.0))
    assert method.aggregation is token_mean
    assert method.requires.all_signals == frozenset()
