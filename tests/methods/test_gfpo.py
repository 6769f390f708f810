"""GFPO: filtering of rollouts and advantages of the kept ones."""

import pytest

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import KeepBest
from grupo.algo.losses import KL, Clip, Entropy
from grupo.core import group_ops
from grupo.core.types import Action, Group, Rollout, Task
from grupo.methods.gfpo import efficiency, gfpo, shortness
from grupo.testing.batches import make_batch


def rollout(length, reward):
    return Rollout(turns=(("", Action(("a",) * length, (0.0,) * length)),), reward=reward)


def kept_rollouts(curate, *lengths_and_rewards):
    (group,) = curate(
        [Group(Task("k", "?"), tuple(rollout(*pair) for pair in lengths_and_rewards))]
    )
    return [(r.length, r.reward) for r in group.rollouts]


def test_shortest_rollouts_are_kept_in_order():
    lengths_and_rewards = (5, 1.0), (2, 0.0), (9, 1.0), (3, 1.0)
    assert kept_rollouts(KeepBest(2, shortness), *lengths_and_rewards) == [(2, 0.0), (3, 1.0)]
    assert kept_rollouts(KeepBest(3, shortness), *lengths_and_rewards) == [
        (5, 1.0),
        (2, 0.0),
        (3, 1.0),
    ]


def test_token_efficiency_may_keep_long_rollouts():
    # rewards per token 0.2, 0, 0.25, 0.1
    lengths_and_rewards = (5, 1.0), (2, 0.0), (8, 2.0), (10, 1.0)
    assert kept_rollouts(KeepBest(2, efficiency), *lengths_and_rewards) == [(5, 1.0), (8, 2.0)]


def test_small_group_is_not_filtered():
    assert kept_rollouts(KeepBest(8, shortness), (1, 0.0), (2, 1.0)) == [(1, 0.0), (2, 1.0)]


def test_advantages_compare_kept_rollouts_only():
    batch = make_batch(group=[0, 0], reward=[0.0, 1.0]).with_advantage(gfpo().advantage)
    assert batch.advantage[:, 0].tolist() == pytest.approx([-1.0, 1.0], rel=1e-5)  # population


def test_defaults_match_paper():
    method = gfpo()
    assert method.advantage == chain(Center(), ScaleByStd(std=group_ops.population_std))
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL() + (-0.001) * Entropy()
    assert method.aggregation is token_mean
    assert method.filter == KeepBest(8, shortness)
