"""DLER: truncation at one length, and at a length for each difficulty."""

import pytest
import torch

from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.divergences import k2
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.types import Group, Response, Rollout, Task
from grupo.methods.dler import (
    KeepInformativeWithinLength,
    TruncationLengths,
    ZeroOverlongReward,
    difficulty_aware_dler,
    dler,
)
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError


def rollout(reward, length):
    return Rollout(turns=(("", Response((1,) * length, (0.0,) * length)),), reward=reward)


def group(*pairs):
    return Group(Task("t", ""), tuple(rollout(*pair) for pair in pairs))


def test_rollouts_longer_than_max_length_have_reward_0():
    batch = make_batch(group=[0] * 3, reward=[1.0, 1.0, 0.0], length=[4, 5, 2])
    assert ZeroOverlongReward(TruncationLengths((4,)))(batch.reward, batch).tolist() == [1, 0, 0]


def test_groups_with_equal_rewards_within_max_length_are_dropped():
    right_but_long = group((1.0, 9), (1.0, 8))
    right_and_short = group((1.0, 3), (1.0, 4))
    told_apart_by_length = group((1.0, 3), (1.0, 9))
    wrong_or_long = group((0.0, 3), (1.0, 9))
    kept = KeepInformativeWithinLength(TruncationLengths((4,)))
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
    assert method.loss == Clip(0.2, 0.28) + 0.0005 * KL(k2)
    assert method.filter == KeepInformativeWithinLength(TruncationLengths((4000,)))
    assert method.updates == Updates(minibatches=8)


TIERS = TruncationLengths((4, 2), (0.5,))


def test_easy_groups_are_truncated_earlier():
    # two of three are correct, and one of three
    batch = make_batch(
        group=[0] * 3 + [1] * 3, reward=[1.0, 1.0, 0.0, 1.0, 0.0, 0.0], length=[2, 3, 1, 3, 1, 1]
    )
    r = ZeroOverlongReward(TIERS)(batch.reward, batch)
    assert r.tolist() == [1, 0, 0, 1, 0, 0]  # 3 tokens are too long for the easy group alone


def test_difficulty_is_the_correctness_before_truncation():
    # all correct, so easy, although every answer is too long to earn anything
    batch = make_batch(group=[0, 0], reward=[1.0, 1.0], length=[3, 4])
    assert ZeroOverlongReward(TIERS)(batch.reward, batch).tolist() == [0, 0]


def test_a_fraction_at_the_threshold_is_easy():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[3, 1])
    assert ZeroOverlongReward(TIERS)(batch.reward, batch).tolist() == [0, 0]


def test_groups_are_kept_by_their_own_truncation_length():
    kept = KeepInformativeWithinLength(TIERS)
    hard, easy = group((1.0, 3), (0.0, 1), (0.0, 1)), group((1.0, 3), (1.0, 4), (0.0, 1))
    assert kept([hard, easy]) == [hard]  # the easy group earns nothing within 2 tokens


def test_three_tiers_have_two_thresholds():
    lengths = TruncationLengths((6, 4, 2), (0.25, 0.75))
    assert lengths(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])).tolist() == [6, 4, 4, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((4, 2),), r"TruncationLengths.max_lengths: \(4, 2\). Allowed: 1 lengths"),
        (((6, 4, 2), (0.7, 0.3)), r"TruncationLengths.thresholds: .* ascending"),
        (((4, 2), (1.5,)), r"TruncationLengths.thresholds: \(1.5,\)"),
    ],
)
def test_tiers_that_do_not_fit_are_errors(arguments, message):
    with pytest.raises(ConfigError, match=message):
        TruncationLengths(*arguments)


def test_difficulty_aware_defaults_are_the_papers():
    lengths = TruncationLengths((4000, 2000), (0.5,))
    method = difficulty_aware_dler()
    assert method.filter == KeepInformativeWithinLength(lengths)
    assert method.advantage == chain(ZeroOverlongReward(lengths), Center(), Whiten())
    assert method.replace(filter=dler().filter, advantage=dler().advantage) == dler()
