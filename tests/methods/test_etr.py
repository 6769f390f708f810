from math import exp, log, tanh

import pytest

from grupo.methods.etr import ElasticBounds, etr
from grupo.methods.grpo import grpo
from grupo.testing.batches import batch_of, moved


def width(reward, advantage):
    batch = batch_of(group=[0] * len(reward), reward=reward, advantage=advantage)
    low, high = ElasticBounds()(batch)
    assert (1 - low).flatten().tolist() == pytest.approx((high - 1).flatten().tolist())
    return (high - 1).flatten().tolist()


def test_the_clip_widens_with_the_advantage_and_the_variance_of_the_group():
    half = width([1.0, 0.0], [1.0, -0.1])  # v = 1
    assert half == pytest.approx([0.2 * (1 + tanh(1) / 2) * 1.25, 0.2 * (1 + tanh(0.1) / 2) * 1.25])
    assert half[0] == pytest.approx(0.3452, abs=1e-4)
    eighth = width([1.0] + [0.0] * 7, [0.1] * 8)  # v = 4 * 7/64 = 0.4375
    assert eighth == pytest.approx([0.2 * (1 + tanh(0.1) / 2) * (1 - 0.0625 / 2)] * 8)
    assert eighth[0] == pytest.approx(0.2034, abs=1e-4)


def test_a_group_that_agrees_has_the_narrowest_clip():
    assert width([1.0, 1.0], [0.0, 0.0]) == pytest.approx([0.15, 0.15])
    assert width([1.0], [0.0]) == pytest.approx([0.15])


def test_the_width_is_bounded():
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], advantage=[9.0, 0.0])
    _, high = ElasticBounds(micro=9.0, macro=-1.9)(batch)
    assert (high - 1).flatten().tolist() == pytest.approx([0.1, 0.1])  # 2 * 0.05 and 0.01
    _, high = ElasticBounds(micro=9.0, macro=0.0)(batch)
    assert (high - 1).flatten().tolist() == pytest.approx([0.6, 0.2])


def test_the_loss_clips_there():
    batch = batch_of(group=[0, 0], reward=[1.0, 0.0], advantage=[1.0, -1.0])
    pi = moved(batch, [[log(1.3)], [log(0.5)]])  # 1.3 is within 1.3452, 0.5 is not within 0.6548
    loss = etr().loss(pi, batch)
    loss.sum().backward()
    edge = 1 - 0.25 * (1 + tanh(1) / 2)
    assert loss.flatten().tolist() == pytest.approx([-1.3, edge])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-1.3, 0])


def test_without_elasticity_it_is_grpo():
    batch = batch_of(group=[0] * 3, reward=[1.0, 0.0, 0.0], advantage=[1.0, -1.0, 0.5])
    pi = moved(batch, [[0.5], [-0.5], [0.1]])
    rigid, plain = (m.loss(pi, batch) for m in (etr(micro=0.0, macro=0.0), grpo(kl=0.0)))
    assert rigid.flatten().tolist() == pytest.approx(plain.flatten().tolist())
    assert rigid[2].item() == pytest.approx(-0.5 * exp(0.1))


def test_the_defaults():
    assert etr().loss.bounds == ElasticBounds(clip=0.2, micro=0.5, macro=0.5)
