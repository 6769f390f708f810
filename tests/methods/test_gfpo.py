"""GFPO: which rollouts are kept, and how they are compared."""

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


def kept(curate, *made):
    (group,) = curate([Group(Task("k", "?"), tuple(rollout(*pair) for pair in made))])
    return [(r.length, r.reward) for r in group.rollouts]


def test_the_shortest_are_kept_in_their_order():
    made = (5, 1.0), (2, 0.0), (9, 1.0), (3, 1.0)
    assert kept(KeepBest(2, shortness), *made) == [(2, 0.0), (3, 1.0)]
    assert kept(KeepBest(3, shortness), *made) == [(5, 1.0), (2, 0.0), (3, 1.0)]


def test_the_most_efficient_may_be_long():
    # rewards per token 0.2, 0, 0.25, 0.1
    made = (5, 1.0), (2, 0.0), (8, 2.0), (10, 1.0)
    assert kept(KeepBest(2, efficiency), *made) == [(5, 1.0), (8, 2.0)]


def test_a_small_group_is_kept_whole():
    assert kept(KeepBest(8, shortness), (1, 0.0), (2, 1.0)) == [(1, 0.0), (2, 1.0)]


def test_those_kept_are_compared_with_one_another():
    batch = make_batch(group=[0, 0], reward=[0.0, 1.0]).with_advantage(gfpo().advantage)
    assert batch.advantage[:, 0].tolist() == pytest.approx([-1.0, 1.0], rel=1e-5)  # population


def test_the_defaults_are_the_papers():
    method = gfpo()
    assert method.advantage == chain(Center(), ScaleByStd(std=group_ops.population_std))
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL() + (-0.001) * Entropy()
    assert method.aggregation is token_mean
    assert method.filter == KeepBest(8, shortness)
