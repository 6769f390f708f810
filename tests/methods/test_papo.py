from math import exp

import pytest

from grupo.algo.losses import KL
from grupo.algo.minibatches import Updates
from grupo.methods.papo import PerceptionLoss, papo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp

SIGNALS = {"logp@masked": [[-3.0]], "logp@ref": [[-1.0]]}  # l = -1


def test_image_dependence_lowers_loss():
    batch = make_batch([0], signals=SIGNALS)
    pi = perturb_logp(batch, [[0.0]])
    loss = PerceptionLoss(perception_coef=0.02, entropy_coef=0.0)(pi, batch)
    k = exp(-2) + 2 - 1
    assert k == pytest.approx(1.1353, abs=1e-4)
    assert loss.item() == pytest.approx(-0.02 * k)
    loss.sum().backward()
    assert pi.logp.grad is not None
    assert pi.logp.grad.item() == pytest.approx(-0.02 * (1 - exp(-2)))  # dk/dl = 1 - e^(m - l)


def test_ignored_image_adds_no_loss():
    batch = make_batch([0], signals={"logp@masked": [[-1.0]]})
    assert (
        PerceptionLoss(perception_coef=0.02, entropy_coef=0.0)(
            perturb_logp(batch, [[0.0]]), batch
        ).item()
        == 0.0
    )


def test_entropy_of_both_distributions_is_penalized():
    batch = make_batch([0], signals=SIGNALS)
    pi = perturb_logp(batch, [[0.0]])
    loss = PerceptionLoss(perception_coef=0.0, entropy_coef=0.03)(pi, batch)
    assert loss.item() == pytest.approx(0.03 * (1 + 3))
    loss.sum().backward()
    assert pi.logp.grad is not None
    assert pi.logp.grad.item() == pytest.approx(-0.03)


def test_perception_kl_is_bounded():
    batch = make_batch([0], logp=0.0, signals={"logp@masked": [[30.0]]})
    value = PerceptionLoss(perception_coef=1.0, entropy_coef=0.0)(
        perturb_logp(batch, [[0.0]]), batch
    )
    assert value.item() == -10.0


def test_loss_is_surrogate_with_two_kl_terms():
    batch = make_batch([0], advantage=[1.0], signals=SIGNALS)
    loss = papo().loss(perturb_logp(batch, [[0.0]]), batch)
    assert loss.item() == pytest.approx(-1.0 - 0.02 * (exp(-2) + 1) + 0.05 * 4)
    assert isinstance(papo().loss.left.right.loss, KL)


def test_defaults_match_release():
    assert papo().sampler == GroupSampler(5)
    assert papo().requires.all_signals == {"logp@ref", "logp@masked"}


def test_step_has_3_minibatches():
    assert papo().updates == Updates(minibatches=3)
