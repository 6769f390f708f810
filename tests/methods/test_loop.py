from dataclasses import replace
from math import log

import pytest
import torch

from grupo.methods.loop import loop
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_the_advantage_is_the_difference_to_the_mean_of_the_other_rollouts():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.5])
    # 1 - (0 + 0.5) / 2, 0 - (1 + 0.5) / 2, 0.5 - (1 + 0) / 2
    assert loop().advantage(batch.reward, batch).tolist() == [0.75, -0.75, 0.0]


def test_an_advantage_below_the_minimum_is_0():
    batch = make_batch(group=[0, 0, 1, 1], reward=[0.505, 0.5, 0.51, 0.5])
    assert loop(min_advantage=0.0075).advantage(batch.reward, batch).tolist() == pytest.approx(
        [0.0, 0.0, 0.01, -0.01]
    )


def test_the_ratio_is_clipped_to_1_over_1_1_and_1_1():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.5]).with_advantage(loop().advantage)
    pi = perturb_logp(batch, [[log(1.3)], [log(0.5)], [log(1.3)]])
    # -1.1 * 0.75, and 0.75 / 1.1
    assert loop().loss(pi, batch)[:, 0].tolist() == pytest.approx([-0.825, 0.681818182, 0.0])


def test_all_rollouts_weigh_the_same_and_a_dropped_one_has_no_loss():
    method = loop()
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.5], length=[1, 3, 4])
    batch = batch.with_advantage(method.advantage)
    weight = method.aggregation(batch)
    assert weight.sum(1).tolist() == pytest.approx([1 / 3] * 3)  # also the third, with A = 0
    assert weight[1].tolist() == pytest.approx([1 / 9, 1 / 9, 1 / 9, 0.0])
    pi = perturb_logp(batch, [[log(1.05)] * 4, [0.0] * 4, [0.0] * 4])
    loss = (weight * method.loss(pi, batch)).sum()
    # rows: -1.05 * 0.75, 0.75 and 0, over 3 rollouts
    assert loss.item() == pytest.approx(-0.05 * 0.75 / 3)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.sum(1).tolist() == pytest.approx([-1.05 * 0.25, 0.25, 0.0])


def test_tokens_of_the_environment_are_not_trained_on_and_not_counted():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[3, 2])
    mask = torch.tensor([[True, False, True], [True, True, False]])
    batch = replace(batch, mask=mask).with_advantage(loop().advantage)
    assert loop().aggregation(batch).tolist() == [[0.25, 0.0, 0.25], [0.25, 0.25, 0.0]]


def test_defaults_match_the_release():
    method = loop()
    assert method.sampler == GroupSampler(6)
    assert method.requires.all_signals == frozenset()
    assert (method.updates.epochs, method.updates.minibatches) == (2, 8)
    assert (1 - method.loss.clip_low, 1 + method.loss.clip_high) == pytest.approx((1 / 1.1, 1.1))
