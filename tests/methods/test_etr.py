from math import exp, log, tanh

import pytest

from grupo.methods.etr import ElasticClipBounds, etr
from grupo.methods.grpo import grpo
from grupo.testing.batches import make_batch, perturb_logp


def clip_widths(reward, advantage):
    batch = make_batch(group=[0] * len(reward), reward=reward, advantage=advantage)
    low, high = ElasticClipBounds()(batch)
    assert (1 - low).flatten().tolist() == pytest.approx((high - 1).flatten().tolist())
    return (high - 1).flatten().tolist()


def test_clip_range_grows_with_advantage_and_group_variance():
    half = clip_widths([1.0, 0.0], [1.0, -0.1])  # v = 1
    assert half == pytest.approx([0.2 * (1 + tanh(1) / 2) * 1.25, 0.2 * (1 + tanh(0.1) / 2) * 1.25])
    assert half[0] == pytest.approx(0.3452, abs=1e-4)
    eighth = clip_widths([1.0] + [0.0] * 7, [0.1] * 8)  # v = 4 * 7/64 = 0.4375
    assert eighth == pytest.approx([0.2 * (1 + tanh(0.1) / 2) * (1 - 0.0625 / 2)] * 8)
    assert eighth[0] == pytest.approx(0.2034, abs=1e-4)


def test_group_with_equal_rewards_has_narrowest_clip():
    assert clip_widths([1.0, 1.0], [0.0, 0.0]) == pytest.approx([0.15, 0.15])
    assert clip_widths([1.0], [0.0]) == pytest.approx([0.15])


def test_clip_range_is_bounded():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], advantage=[9.0, 0.0])
    _, high = ElasticClipBounds(advantage_coef=9.0, variance_coef=-1.9)(batch)
    assert (high - 1).flatten().tolist() == pytest.approx([0.1, 0.1])  # 2 * 0.05 and 0.01
    _, high = ElasticClipBounds(advantage_coef=9.0, variance_coef=0.0)(batch)
    assert (high - 1).flatten().tolist() == pytest.approx([0.6, 0.2])


def test_loss_uses_elastic_clip_range():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], advantage=[1.0, -1.0])
    pi = perturb_logp(
        batch, [[log(1.3)], [log(0.5)]]
    )  # 1.3 is within 1.3452, 0.5 is not within 0.6548
    loss = etr().loss(pi, batch)
    loss.sum().backward()
    edge = 1 - 0.25 * (1 + tanh(1) / 2)
    assert loss.flatten().tolist() == pytest.approx([-1.3, edge])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-1.3, 0])


def test_zero_elasticity_reduces_to_grpo():
    batch = make_batch(group=[0] * 3, reward=[1.0, 0.0, 0.0], advantage=[1.0, -1.0, 0.5])
    pi = perturb_logp(batch, [[0.5], [-0.5], [0.1]])
    rigid, plain = (
        m.loss(pi, batch) for m in (etr(advantage_coef=0.0, variance_coef=0.0), grpo(kl_coef=0.0))
    )
    assert rigid.flatten().tolist() == pytest.approx(plain.flatten().tolist())
    assert rigid[2].item() == pytest.approx(-0.5 * exp(0.1))


def test_default_hyperparameters():
    assert etr().loss.bounds == ElasticClipBounds(
        clip_eps=0.2, advantage_coef=0.5, variance_coef=0.5
    )
