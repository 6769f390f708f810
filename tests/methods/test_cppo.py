from math import exp

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.cppo import TopAdvantageMean, cppo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def weights(advantage, length=None, group=None, pruned=0.5):
    group = group or [0] * len(advantage)
    batch = make_batch(group=group, advantage=advantage, length=length)
    return TopAdvantageMean(pruned)(batch).sum(1).tolist()


def test_half_of_the_group_is_kept_with_equal_weights():
    assert weights([1.5, -0.2, 0.1, -1.4], length=[1, 2, 3, 4]) == pytest.approx([0.5, 0, 0, 0.5])


def test_ties_share_the_last_place():
    # three of six are kept: the first, and the four that tie share two places
    assert weights([2.0, -1.0, -1.0, -1.0, -1.0, 0.5]) == pytest.approx(
        [1 / 3, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 0.0]
    )
    assert weights([0.0, 0.0, 0.0, 0.0]) == pytest.approx([1 / 4] * 4)


def test_weights_have_the_precision_of_the_batch():
    # one of three is kept, and two tie for its place: 1/2; of 3 tokens, 1/6 each
    batch = make_batch(group=[0] * 3, advantage=[2.0, 2.0, 0.1], length=[3, 3, 3])
    assert TopAdvantageMean(0.5)(batch)[0].tolist() == [1 / 6] * 3


def test_every_group_keeps_its_own_largest_advantages():
    assert weights([9.0, 8.0, 0.2, 0.1], group=[0, 0, 1, 1]) == pytest.approx([0.5, 0, 0.5, 0])


def test_at_least_one_rollout_is_kept():
    assert weights([0.3, -0.4], pruned=0.95) == pytest.approx([0, 1])
    assert weights([0.7], pruned=0.95) == [1.0]


def test_prune_fraction_0_is_grpo():
    batch = make_batch(group=[0, 0], advantage=[1.0, -0.5], length=[1, 2])
    assert TopAdvantageMean(0.0)(batch).tolist() == [[0.5, 0.0], [0.25, 0.25]]


def test_advantages_use_the_whole_group_and_gradients_the_kept_rollouts():
    method = cppo(prune_fraction=0.5, kl_coef=0.0)
    batch = make_batch(group=[0] * 4, reward=[1.0, 0.0, 0.0, 0.0]).with_advantage(method.advantage)
    # mean 1/4, std 1/2: A = 1.5, -0.5, -0.5, -0.5; the three share one place
    pi = perturb_logp(batch, [[0.1], [0.1], [0.1], [0.1]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    r = exp(0.1)
    expected = [-1.5 * r / 2, 0.5 * r / 6, 0.5 * r / 6, 0.5 * r / 6]
    assert gradient[:, 0].tolist() == pytest.approx(expected, rel=1e-5)


def test_defaults():
    assert cppo().sampler == GroupSampler(16)
    assert cppo().aggregation == TopAdvantageMean(0.5)
    assert cppo().loss == Clip(0.2, 0.2) + 0.04 * KL()


def test_update_plan_is_the_released_one():
    assert cppo().updates == Updates(epochs=2)
