from math import exp

import pytest

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL
from grupo.methods.papo import PerceptionLoss, papo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.recorded_batches import flat, learned, six

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
    assert loss.item() == pytest.approx(-1.0 - 0.02 * (exp(-2) + 1) + 0.03 * 4)
    assert isinstance(papo().loss.left.right.loss, KL)


def test_defaults_match_release():
    assert papo().sampler == GroupSampler(5)
    assert papo().required_signals == {"logp@ref", "logp@masked"}


def test_matches_reference_implementation():
    # MikeWangWZHL/PAPO @ fb63bf4, verl/workers/actor/dp_actor.py, update_policy, from its loss
    # to its entropies, with compute_policy_loss and compute_kl of verl/trainer/core_algos.py and
    # its default, token means; inputs as below
    signals = {
        "logp@ref": [
            [-1.1, -0.7, -1.5],
            [-0.6, -1.4, 9.0],
            [-1.2, 9.0, 9.0],
            [-0.2, -1.3, 9.0],
            [-1.0, -0.9, -0.8],
            [-1.1, 9.0, 9.0],
        ],
        "logp@masked": [
            [-1.6, -0.9, -1.2],
            [-0.9, -2.4, 9.0],
            [-0.8, 9.0, 9.0],
            [-1.2, -1.0, 9.0],
            [-1.5, -0.4, -1.8],
            [-0.3, 9.0, 9.0],
        ],
    }
    batch = six(advantage=[1.2, -0.7, -0.5, 0.6, 0.9, -1.5], signals=signals)
    method = papo().replace(aggregation=token_mean)
    loss, gradient = learned(method, batch)
    assert loss == pytest.approx(-0.2297682, rel=1e-5)
    rows = [
        [-0.1137051, -0.07682807, -0.106239],
        [0.07191361, 0.04666517],
        [-0.001595539],
        [-0.003532579, -0.002051693],
        [-0.07446926, -0.04843859, -0.09059795],
        [0.1682749],
    ]
    assert gradient == pytest.approx(flat(rows), rel=1e-5, abs=1e-9)
