from math import exp

import pytest

from grupo.algo.losses import ClipPreserveGradient
from grupo.algo.minibatches import Updates
from grupo.methods.ce_gppo import ce_gppo
from grupo.methods.gppo import gppo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0] * 3, advantage=[1.0, -1.0, -1.0])


def test_each_side_of_the_clip_has_its_own_scale():
    pi = perturb_logp(BATCH, [[0.5], [-0.5], [0.5]])
    loss = ce_gppo(low_scale=0.5, high_scale=0.7).loss(pi, BATCH)
    loss.sum().backward()
    # values are -w A log pi with log pi = -0.5, -1.5, -0.5
    assert loss.flatten().tolist() == pytest.approx([0.7 * 1.2 * 0.5, -0.4 * 1.5, -exp(0.5) * 0.5])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-0.7 * 1.2, 0.5 * 0.8, exp(0.5)])


def test_scales_of_1_are_gppo():
    clip = {"clip_low": 0.2, "clip_high": 0.28}
    assert ce_gppo(low_scale=1.0, high_scale=1.0, **clip).loss == gppo(**clip).loss


def test_defaults_are_those_of_the_authors_script():
    assert ce_gppo().loss.weight == ClipPreserveGradient(
        clip_low=0.2, clip_high=0.2, low_scale=0.75, high_scale=1.0
    )


def test_update_plan_is_the_released_one():
    assert ce_gppo().updates == Updates(minibatches=8)
