from math import exp

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.core.types import Group, Rollout, Task
from grupo.methods.raft_pp import keep_top_reward, raft_pp
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def group(*rewards):
    return Group(Task("t", "?"), tuple(Rollout(reward=r) for r in rewards))


def test_only_correct_rollouts_have_gradient():
    groups = keep_top_reward([group(1.0, 0.0, 1.0), group(0.0, 0.0), group(-1.0, 1.0), group()])
    assert [g.rewards for g in groups] == [(1.0, 1.0), (1.0,)]


def test_all_wrong_groups_are_dropped():
    assert keep_top_reward([group(-1.0, -1.0), group(0.0, -1.0)]) == []


def test_graded_rewards_keep_maximum():
    assert [g.rewards for g in keep_top_reward([group(0.5, 0.75, 0.25)])] == [(0.75,)]


def test_kept_rollouts_use_clipped_surrogate():
    method = raft_pp()
    batch = make_batch(group=[0, 0], reward=[1.0, 1.0]).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1], [0.3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-(exp(0.1) + 1.2) / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([-exp(0.1) / 2, 0])


def test_defaults_match_paper():
    method = raft_pp()
    assert (method.sampler, method.loss) == (GroupSampler(4), Clip(0.2, 0.2))
    assert method.filter is keep_top_reward
