import pytest

from grupo.algo.losses import Clip
from grupo.core.types import Action, Group, Rollout, Task
from grupo.methods.dler import KeepInformativeWithinLength, ZeroOverlongReward, dler
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def rollout(reward, length):
    return Rollout(turns=(("", Action((1,) * length, (0.0,) * length)),), reward=reward)


def group(*pairs):
    return Group(Task("t", ""), tuple(rollout(*pair) for pair in pairs))


def test_rollouts_longer_than_max_length_have_reward_0():
    batch = make_batch(group=[0] * 3, reward=[1.0, 1.0, 0.0], length=[4, 5, 2])
    assert ZeroOverlongReward(4)(batch.reward, batch).tolist() == [1, 0, 0]


def test_groups_with_equal_rewards_within_max_length_are_dropped():
    right_but_long = group((1.0, 9), (1.0, 8))
    right_and_short = group((1.0, 3), (1.0, 4))
    told_apart_by_length = group((1.0, 3), (1.0, 9))
    wrong_or_long = group((0.0, 3), (1.0, 9))
    kept = KeepInformativeWithinLength(4)
    assert kept([right_but_long, right_and_short, wrong_or_long]) == []
    assert kept([told_apart_by_length]) == [told_apart_by_length]


def test_advantages_are_whitened_over_the_batch():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 1.0, 1.0], length=[1, 1, 1, 3])
    # within 2: 1 0 1 0, less means 1/2 -1/2 1/2 -1/2 on 1 1 1 3 tokens, mean -1/6 over six
    advantage = dler(max_length=2).advantage(batch.reward, batch)[:, 0].tolist()
    up, down = 0.5 + 1 / 6, -0.5 + 1 / 6  # two tokens up, four down
    variance = (2 * up**2 + 4 * down**2) / 5
    assert advantage == pytest.approx([x / variance**0.5 for x in (up, down, up, down)])


def test_defaults_are_the_papers():
    method = dler(max_length=4000)
    assert method.sampler == GroupSampler(16)
    assert method.loss == Clip(0.2, 0.28)
    assert method.filter == KeepInformativeWithinLength(4000)
